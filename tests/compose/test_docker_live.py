"""The docker runtime on a real Engine: clusters come up, obey, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compose import docker_images, docker_ports, docker_runtime
from compose.docker_here import ask, engine_reason
from compose.docker_runtime import DockerCluster, DockerRuntime
from compose.docker_undo import PROJECT_LABEL, leftovers, remove_project
from compose.families import resp
from compose.registry import BACKENDS
from compose.waiting import wait_until
from harness.core.errors import HarnessError, RefusedError
from harness.core.undo import perform
from harness.ledger import FileLedger

ROOT = Path(__file__).parents[2]
REASON = engine_reason()
pytestmark = [
    pytest.mark.live,
    pytest.mark.docker,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
]

EMPTY: dict[str, list[str]] = {"container": [], "network": [], "volume": []}


def left_by(project: str) -> dict[str, list[str]]:
    return leftovers(f"{PROJECT_LABEL}={project}")


@contextlib.contextmanager
def cluster_of(
    ledger: FileLedger, backend: str = "redis-single", *, workers: int = 1, **options: str
) -> Iterator[DockerCluster]:
    run_dir = ledger.path.parent
    cluster = DockerRuntime().up(backend, options, workers=workers, run_dir=run_dir, ledger=ledger)
    try:
        yield cluster
    finally:
        cluster.down()
    assert left_by(cluster.project.name) == EMPTY
    assert not ledger.open


def set_key(cluster: DockerCluster, port: int) -> None:
    resp.ask("127.0.0.1", port, ("SET", "lock", "mine"))


def keys(cluster: DockerCluster) -> int:
    return int(cluster.nodes[cluster.primary()].facts()["keys"])


@pytest.mark.parametrize(
    "backend", [name for name in BACKENDS.names() if len(BACKENDS.load(name).nodes) == 1]
)
def test_a_cluster_comes_up_answers_and_leaves_nothing(
    backend: str, ledger: FileLedger, tmp_path: Path
) -> None:
    (name,) = BACKENDS.load(backend).node_names
    with cluster_of(ledger, backend, workers=3) as cluster:
        assert len(cluster.versions) == 3
        assert {"toxiproxy", "docker engine"} < set(cluster.versions)
        assert cluster.versions["toxiproxy"] == "2.12.0"
        assert [link.name for link in cluster.links] == [f"w{n}-{name}" for n in range(3)]
        ports = {cluster.endpoints(worker)[0]["port"] for worker in range(3)}
        assert len(ports) == 3
        for link in cluster.links:
            assert link.probe(2_000).outcome == "answered"
            assert link.toxics() == []
        node = cluster.nodes[cluster.primary()]
        assert (node.name, node.role) == (name, "primary")
        with pytest.raises(HarnessError, match="worker 3"):
            cluster.endpoints(3)
        cluster.collect_logs(tmp_path / "nodes")
        log = (tmp_path / "nodes" / f"{name}.log").read_bytes()
        assert b"ready to accept connections" in log.lower()
        assert (tmp_path / "nodes" / "toxiproxy.log").stat().st_size > 0
        cluster.down()  # a second time, by the context, does no harm


def test_a_node_is_paused_killed_started_and_wiped(ledger: FileLedger) -> None:
    with cluster_of(ledger) as cluster:
        node, link = cluster.nodes["redis"], cluster.links[0]
        set_key(cluster, link.port)
        born = node.status()
        run_id = node.facts()["run_id"]
        assert born.state == "running"

        node.pause()
        node.pause()  # idempotent, as everything a fault may do twice
        assert node.status().state == "paused"
        assert node.status().identity == born.identity
        assert node.probe(250).outcome == "silent"
        assert link.probe(250).outcome == "silent"
        node.resume()
        node.resume()
        assert node.status() == born
        assert node.probe(2_000).outcome == "answered"
        assert node.facts()["run_id"] == run_id

        node.kill()
        assert node.status().state == "dead"
        assert node.probe(250).outcome in ("refused", "closed")
        assert link.probe(250).outcome in ("refused", "closed")
        with pytest.raises(HarnessError):
            node.facts()
        node.start()
        assert node.status().state == "running"
        assert node.status().identity != born.identity
        assert node.facts()["run_id"] != run_id
        assert keys(cluster) == 1, "what was written before the kill survives it"
        assert link.probe(2_000).outcome == "answered", "the link finds the restarted server"

        with pytest.raises(HarnessError, match="must be dead before"):
            node.start(wipe=True)
        node.pause()
        node.kill()  # also a paused one dies
        assert node.status().state == "dead"
        node.start(wipe=True)
        assert keys(cluster) == 0
        assert link.probe(2_000).outcome == "answered"


def test_a_severed_link_is_closed_and_comes_back(ledger: FileLedger) -> None:
    with cluster_of(ledger, workers=2) as cluster:
        cut, other = cluster.links
        with socket.create_connection(("127.0.0.1", cut.port), timeout=2) as open_before:
            cut.set_enabled(False)
            open_before.settimeout(2)
            assert open_before.recv(1) == b"", "an open connection ends"
        assert cut.probe(250).outcome in ("refused", "closed")
        assert other.probe(2_000).outcome == "answered"
        for step in cut.undo():
            perform(step)
        assert cut.probe(2_000).outcome == "answered"
        assert cut.toxics() == []


def test_without_persistence_a_kill_forgets(ledger: FileLedger) -> None:
    with cluster_of(ledger, persistence="none") as cluster:
        node = cluster.nodes["redis"]
        set_key(cluster, cluster.links[0].port)
        assert keys(cluster) == 1
        assert node.facts()["persistent"] is False
        node.kill()
        node.start()
        assert keys(cluster) == 0


def test_undo_of_a_pause_works_in_every_state(ledger: FileLedger) -> None:
    with cluster_of(ledger) as cluster:
        node = cluster.nodes["redis"]
        (step,) = node.undo_pause()
        perform(step)  # not paused
        node.pause()
        perform(step)
        assert node.status().state == "running"
        node.kill()
        perform(step)  # dead
    perform(step)  # gone


def test_a_taken_port_is_replaced(ledger: FileLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    real = docker_ports.free_range
    given: list[int] = []

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()

        def first_a_taken_one(count: int) -> int:
            given.append(real(count) if given else taken.getsockname()[1])
            return given[-1]

        monkeypatch.setattr(docker_runtime, "free_range", first_a_taken_one)
        with cluster_of(ledger) as cluster:
            assert len(given) == 2
            assert cluster.links[0].probe(2_000).outcome == "answered"


def test_the_release_chooses_the_version(ledger: FileLedger) -> None:
    if not docker_images.exists(docker_images.base_image("bookworm")):
        if os.geteuid() != 0:
            pytest.skip("debian:bookworm-slim is not here, and making it needs root")
        script = ["sh", str(ROOT / "compose" / "engine.sh")]
        subprocess.run(script, env={**os.environ, "RELEASE": "bookworm"}, check=True)
    with cluster_of(ledger, release="bookworm") as cluster:
        assert cluster.versions["redis"].startswith("7.0.")
    with cluster_of(ledger, release="trixie") as cluster:
        assert cluster.versions["redis"].startswith("8.")


def test_an_image_can_be_given(ledger: FileLedger) -> None:
    built = docker_images.ensure("redis", release="trixie")
    ask("tag", built, "lockhavoc-test/given:1")
    try:
        with cluster_of(ledger, image="lockhavoc-test/given:1") as cluster:
            assert cluster.links[0].probe(2_000).outcome == "answered"
            _, image = ask(
                "inspect", "--format", "{{.Config.Image}}", cluster.container_id("redis")
            )
            assert image == "lockhavoc-test/given:1"
    finally:
        ask("image", "rm", "lockhavoc-test/given:1")


def test_an_image_that_cannot_be_had_is_refused(ledger: FileLedger) -> None:
    name = "127.0.0.1:9/lockhavoc-test/nobody:1"
    with pytest.raises(RefusedError, match="cannot be pulled"), cluster_of(ledger, image=name):
        pass
    assert not ledger.path.read_bytes(), "refused before anything was promised"


def test_a_server_that_does_not_start_is_named_and_removed(ledger: FileLedger) -> None:
    image = "lockhavoc-test/redis-that-does-not-start"  # it only says its version
    script = '[ "$1" = --version ] || { echo no licence >&2; exit 3; }; exec redis-check-rdb "$@"'
    lines = (
        f"FROM {docker_images.ensure('redis', release='trixie')}",
        "USER root",
        f"RUN printf '%s\\n' '#!/bin/sh' '{script}' > /usr/local/bin/redis-server"
        " && chmod 755 /usr/local/bin/redis-server",
    )
    build = ["docker", "buildx", "build", "--load", "-q", "--tag", image]
    build += ["--label=lockhavoc=1", "-"]
    subprocess.run(build, input="\n".join(lines).encode(), check=True, capture_output=True)
    with pytest.raises(HarnessError, match="no licence"), cluster_of(ledger, image=image):
        pass
    assert left_by(promised_project(ledger.path.parent)) == EMPTY
    assert not ledger.open


# --- a harness that dies ------------------------------------------------------------------------

HARNESS = """
import signal
import sys
from pathlib import Path
from compose.docker_runtime import DockerRuntime
from harness.core.clock import MonotonicClock
from harness.ledger import FileLedger

# A job in the background starts with SIGINT ignored; Ctrl-C must mean the same everywhere.
signal.signal(signal.SIGINT, signal.default_int_handler)
run_dir = Path(sys.argv[1])
ledger = FileLedger(run_dir, MonotonicClock())
cluster = DockerRuntime().up("redis-single", {}, workers=2, run_dir=run_dir, ledger=ledger)
node = cluster.nodes["redis"]
ledger.promise(node.undo_pause(), why="pause")
node.pause()
print("paused", flush=True)
sys.stdin.read()
"""
HEAL = """
import sys
from pathlib import Path
from harness.ledger import heal
done, failures = heal(Path(sys.argv[1]))
print("\\n".join(done))
sys.exit("\\n".join(failures) or 0)
"""


def python(code: str, *args: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def promised_project(run_dir: Path) -> str:
    """Name of the Compose project, from the first promise of a ledger."""
    first = json.loads((run_dir / "faults.jsonl").read_text().splitlines()[0])
    return str(first["steps"][0]["mark"])


def test_heal_removes_all_after_kill_9(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    with python(HARNESS, str(run_dir), cwd=tmp_path) as harness:
        assert harness.stdout is not None
        assert harness.stderr is not None
        assert harness.stdout.readline() == "paused\n", harness.stderr.read()
        harness.kill()
    project = promised_project(run_dir)
    found = left_by(project)
    assert (len(found["container"]), len(found["network"]), len(found["volume"])) == (2, 1, 1)
    # From another folder and another process, with nothing but the ledger.
    with python(HEAL, str(run_dir), cwd=Path("/")) as healer:
        said, complaint = healer.communicate(timeout=60)
    assert healer.returncode == 0, complaint
    assert "unpause" in said
    assert left_by(project) == EMPTY
    with python(HEAL, str(run_dir), cwd=Path("/")) as healer:
        said, _ = healer.communicate(timeout=60)
    assert (healer.returncode, said.strip()) == (0, ""), "a second heal has nothing to do"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("reached", ["network", "container", "running"])
def test_an_interrupted_start_leaves_nothing(
    reached: str, how: signal.Signals, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    ledger_file = run_dir / "faults.jsonl"
    with python(HARNESS, str(run_dir), cwd=tmp_path) as harness:
        assert wait_until(
            lambda: ledger_file.exists() and b"down" in ledger_file.read_bytes(), timeout_s=60
        )
        project = promised_project(run_dir)
        running = ["--filter", "status=running"] if reached == "running" else []
        kind = ["network", "ls", "-q"] if reached == "network" else ["ps", "-aq", *running]
        label = ["--filter", f"label={PROJECT_LABEL}={project}"]
        assert wait_until(lambda: bool(ask(*kind, *label)[1]), timeout_s=60)
        harness.send_signal(how)
        harness.communicate(timeout=60)
    if how == signal.SIGKILL:
        with python(HEAL, str(run_dir), cwd=Path("/")) as healer:
            _, complaint = healer.communicate(timeout=60)
        assert healer.returncode == 0, complaint
    assert left_by(project) == EMPTY
    remove_project(project)
