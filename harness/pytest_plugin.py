"""pytest plugin: scenarios as tests, and real servers behind a proxy as fixtures.

    @pytest.mark.lockhavoc("scenarios/holder-pause.toml", seed=7)
    def test_it_holds(lockhavoc_run): assert lockhavoc_run.verdict == "as-claimed"

    def test_my_lock(lock_backend):
        redis = lock_backend("redis-single")
        with redis.severed(): ...

The tool runs out of process, so neither its dependencies nor its packages are imported here: this
file needs pytest and the standard library.  Options, ini values and fixtures begin with lockhavoc
or lock_.  Under xdist each worker process has servers and a store of its own.

Trap: nothing may start at import, since every pytest run of whoever installed the tool loads this.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

STOP_S = 20.0  # for taking servers down in order
PROPERTIES = "lockhavoc_"
SHOWN = ("verdict", "seed", "run_dir", "says")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lockhavoc", "distributed locks (lockhavoc)")
    group.addoption("--lockhavoc-command", metavar="CMD", help="How to call it; default: on PATH.")
    group.addoption("--lockhavoc-runtime", metavar="NAME", help="process (default), docker or sim.")
    group.addoption("--lockhavoc-store", metavar="DIR", help="Where runs are kept; default: store.")
    parser.addini("lockhavoc_command", "how to call lockhavoc", default="")
    parser.addini(
        "lockhavoc_runtime", "where servers run: process, docker or sim", default="process"
    )
    parser.addini(
        "lockhavoc_store", "where runs are kept, from the root directory", default="store"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "lockhavoc(scenario, seed=None, repeat=1, timeout_s=600): runs the scenario (a path from "
        "the test's folder or the root directory) before the test; fails if it ends not as claimed",
    )


class Settings:
    """Options of the command line, else of the ini file."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.runtime = str(_setting(config, "runtime"))
        store = Path(str(_setting(config, "store")))
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        self.store = config.rootpath / store / worker if worker else config.rootpath / store
        self.argv = _command(str(_setting(config, "command")))


def _setting(config: pytest.Config, name: str) -> Any:
    return config.getoption(f"--lockhavoc-{name}") or config.getini(f"lockhavoc_{name}")


def _command(given: str) -> list[str]:
    if given:
        return shlex.split(given)
    beside = Path(sys.executable).with_name("lockhavoc")
    found = str(beside) if beside.exists() else shutil.which("lockhavoc")
    if found is None:
        pytest.fail(
            "no lockhavoc on PATH; install it in an environment of its own, or say how to call it "
            "with --lockhavoc-command or lockhavoc_command in the ini file",
            pytrace=False,
        )
    return [found]


class ScenarioRun:
    """What became of the marked scenario.  ``document``: the runs as ``lockhavoc run --json``
    prints them; ``verdict``, ``seed`` and ``directory`` of the last."""

    def __init__(self) -> None:
        self.document: list[dict[str, Any]] = []
        self.exit_code: int | None = None

    @property
    def last(self) -> dict[str, Any]:
        if not self.document:
            raise RuntimeError("the scenario runs right before the test; nothing is known yet")
        return self.document[-1]

    @property
    def verdict(self) -> str:
        return str(self.last.get("verdict"))

    @property
    def seed(self) -> int:
        return int(self.last["seed"])

    @property
    def directory(self) -> Path:
        return Path(str(self.last["run_dir"]))


_RUN = pytest.StashKey[ScenarioRun]()


@pytest.fixture
def lockhavoc_run(request: pytest.FixtureRequest) -> ScenarioRun:
    """The run of the scenario that the mark names, filled when the test begins."""
    if request.node.get_closest_marker("lockhavoc") is None:
        pytest.fail("lockhavoc_run needs the mark lockhavoc(scenario) on the test", pytrace=False)
    return _run_of(request.node)


def _run_of(item: pytest.Item) -> ScenarioRun:
    return item.stash.setdefault(_RUN, ScenarioRun())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Runs the marked scenario in front of the test's own body."""
    mark = item.get_closest_marker("lockhavoc")
    if mark is not None:
        _play(item, *mark.args, **mark.kwargs)


def _play(
    item: pytest.Item,
    scenario: str,
    *,
    seed: int | None = None,
    repeat: int = 1,
    timeout_s: float = 600.0,
) -> None:
    settings, path = Settings(item.config), _find(item, scenario)
    argv = [*settings.argv, "run", str(path), "--json", "-q", "--runtime", settings.runtime]
    argv += ["--store", str(settings.store), "--repeat", str(repeat)]
    if seed is not None:
        argv += ["--seed", str(seed)]
    code, out, err = _finish(argv, timeout_s)
    run = _run_of(item)
    run.exit_code = code
    if not out.strip():
        pytest.fail(f"{shlex.join(argv)}\nexit code {code}\n{err.strip()}", pytrace=False)
    found = json.loads(out)
    run.document = list(found["runs"]) if "runs" in found else [found]
    for name in SHOWN:
        item.user_properties.append((PROPERTIES + name, str(run.last.get(name, ""))))
    if code != 0:
        told = "\n".join(f"{one.get('verdict')}: {one.get('says')}" for one in run.document)
        pytest.fail(
            f"{path.name} ended with exit code {code}, not as claimed\n{told}\n"
            f"run: {run.directory}\nrepeat: {shlex.join(argv)}",
            pytrace=False,
        )


def _find(item: pytest.Item, scenario: str) -> Path:
    for folder in (item.path.parent, item.config.rootpath):
        if (folder / scenario).is_file():
            return folder / scenario
    return pytest.fail(
        f"the mark lockhavoc names {scenario!r}, which is neither beside {item.path.name} nor in "
        f"{item.config.rootpath}",
        pytrace=False,
    )


def _finish(argv: Sequence[str], timeout_s: float) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; after the time limit it is interrupted, so that it heals."""
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException as error:
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=STOP_S)
            finally:
                process.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                pytest.fail(f"{shlex.join(argv)}\nstill ran after {timeout_s} s", pytrace=False)
            raise
    return process.returncode, out, err


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line per scenario: verdict, seed and where the run is."""
    rows = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            told = dict(getattr(report, "user_properties", None) or [])
            if PROPERTIES + "verdict" in told and getattr(report, "when", "") == "call":
                rows.append((report.nodeid, told))
    if rows:
        terminalreporter.section("lockhavoc")
    for nodeid, told in rows:
        verdict, seed, run = (told[PROPERTIES + name] for name in ("verdict", "seed", "run_dir"))
        terminalreporter.line(f"{verdict}  {nodeid}  seed {seed}  {run}")


class Backend:
    """Real servers behind a proxy.  nodes: [{"name", "host", "port"}]; ``host`` and ``port`` are
    the first one's.  All that was done to it is undone after the test."""

    def __init__(self, process: subprocess.Popen[str], ready: dict[str, Any]) -> None:
        self._process, self._number = process, 0
        self.name: str = ready["backend"]
        self.nodes: list[dict[str, Any]] = ready["nodes"]
        self.versions: dict[str, str] = ready["versions"]
        self.host: str = self.nodes[0]["host"]
        self.port: int = self.nodes[0]["port"]

    def do(self, do: str, **fields: Any) -> None:
        """Sends one request (``lockhavoc backend --help``); RuntimeError if it is refused."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        self._process.stdin.write(json.dumps({"id": self._number, "do": do, **fields}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"backend {self.name} ended with {self._process.wait()}")
        reply = json.loads(line)
        if not reply["ok"]:
            raise RuntimeError(f"backend {self.name}: {reply['error']}")

    def heal(self) -> None:
        """Links clean, all servers running."""
        self.do("heal")

    @contextlib.contextmanager
    def severed(self) -> Iterator[None]:
        """Connections are cut, new ones refused."""
        with self._while("sever"):
            yield

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Requests arrive, answers do not."""
        with self._while("mute"):
            yield

    @contextlib.contextmanager
    def late(self, ms: int) -> Iterator[None]:
        """Answers come so much later."""
        with self._while("latency", ms=ms):
            yield

    @contextlib.contextmanager
    def paused(self, node: str | None = None) -> Iterator[None]:
        """The server (None: all) is stopped and goes on afterwards."""
        with self._while("pause", node=node):
            yield

    @contextlib.contextmanager
    def killed(self, node: str | None = None) -> Iterator[None]:
        """The server (None: all) is dead and is started again afterwards."""
        with self._while("kill", node=node):
            yield

    @contextlib.contextmanager
    def _while(self, do: str, **fields: Any) -> Iterator[None]:
        self.do(do, **fields)
        try:
            yield
        finally:
            self.heal()


@pytest.fixture(scope="session")
def _lock_backends(request: pytest.FixtureRequest) -> Iterator[dict[str, Backend]]:
    running: dict[str, Backend] = {}
    yield running
    for backend in running.values():
        process = backend._process
        with contextlib.suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]  # a pipe, see _start
        try:
            process.wait(STOP_S)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]  # as above


@pytest.fixture
def lock_backend(
    request: pytest.FixtureRequest, _lock_backends: dict[str, Backend]
) -> Iterator[Callable[[str], Backend]]:
    """``lock_backend("redis-single")``: that backend, started at its first use in this session."""
    used: list[Backend] = []

    def give(name: str) -> Backend:
        if name not in _lock_backends:
            _lock_backends[name] = _start(Settings(request.config), name)
        used.append(_lock_backends[name])
        return _lock_backends[name]

    yield give
    for backend in used:
        backend.heal()


def _start(settings: Settings, name: str) -> Backend:
    argv = [*settings.argv, "backend", name, "--runtime", settings.runtime]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        code = process.wait()
        process.stdout.close()
        process.stdin.close()  # type: ignore[union-attr]  # a pipe, see above
        pytest.fail(f"{shlex.join(argv)} ended with exit code {code}; see stderr", pytrace=False)
    return Backend(process, json.loads(line))
