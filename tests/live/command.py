"""Runs the command line as a user does: another process, its output and exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compose import doctor
from harness.core.errors import RefusedError

ROOT = Path(__file__).resolve().parents[2]
LOCKHAVOC = [sys.executable, "-m", "harness.cli"]
RUN_TIMEOUT_S = 300


def require(runtime: str) -> None:
    """Skips, with the reason, where this runtime cannot run."""
    try:
        doctor.choose(runtime, "redis-single")
    except RefusedError as error:
        pytest.skip(str(error))


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def lockhavoc(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs ``lockhavoc WORDS`` to its end."""
    return subprocess.run(
        [*LOCKHAVOC, *words],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        env=environment(**changes),
        cwd=ROOT,
        check=False,
    )


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """``lockhavoc WORDS`` in the background; killed and healed if the block leaves it running."""
    process = subprocess.Popen(
        [*LOCKHAVOC, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=ROOT,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
                lockhavoc("heal", "--store", words[words.index("--store") + 1])


def documents(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The run documents of a ``--json`` call."""
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    return list(found["runs"]) if "runs" in found else [found]


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = 60.0) -> Any:
    """Waits until ``condition`` is true and returns what it gave."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s} s"
        time.sleep(0.02)


def current_run(store: Path) -> Path | None:
    """The directory of the run in progress, once operations are being recorded."""
    run = store / "current"
    history = run / "history.jsonl"
    if not history.exists() or history.read_bytes().count(b"\n") < 20:
        return None
    return run.resolve()


def leftovers(store: Path) -> list[str]:
    """Processes that have the store in their command line or environment, but not ourselves."""
    needle = str(store).encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if needle in command and state != "Z":
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def docker_leftovers(run: Path) -> list[str]:
    """Containers, networks and volumes of the Compose projects that a run's ledger names."""
    projects = set(re.findall(r"lockhavoc-[0-9a-f]{12}", (run / "faults.jsonl").read_text()))
    assert projects, "the ledger of a docker run names its project"
    found = []
    for kind in (["ps", "-a"], ["network", "ls"], ["volume", "ls"]):
        argv = ["docker", *kind, "--filter", "label=com.docker.compose.project", "--format"]
        argv += ['{{.Label "com.docker.compose.project"}}']
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
        found += [f"{kind[0]} {line}" for line in done.stdout.split() if line in projects]
    return found
