"""What every ZooKeeper library must do, against a real ensemble of three (docker runtime)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clients.environments import ensure
from clients.registry import LIBRARIES
from compose.docker_runtime import DockerRuntime
from compose.waiting import wait_until
from harness.core.protocols import Cluster, Link
from tests.clients.workers import WorkerUnderTest, worker
from tests.compose.local import DiskLedger
from tests.conformance.sharing import shared_rules

pytestmark = [pytest.mark.live, pytest.mark.docker]

NAMES = [name for name in LIBRARIES.names() if "zookeeper3" in LIBRARIES.load(name).backends]
FENCED = [name for name in NAMES if LIBRARIES.load(name).fencing]
LONG_MS = 20_000  # longer than any test: no session ends by accident on a slow machine
SHORT_MS = 2_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    reason = DockerRuntime().can("zookeeper3")
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("zookeeper3")
    ledger = DiskLedger(folder / "ledger.jsonl")
    running = DockerRuntime().up("zookeeper3", {}, workers=2, run_dir=folder, ledger=ledger)
    try:
        yield running
    finally:
        running.down()


def nodes(cluster: Cluster, index: int) -> Sequence[dict[str, Any]]:
    found = cluster.endpoints(index)
    return [{**node, "own": at == index % len(found)} for at, node in enumerate(found)]


@contextlib.contextmanager
def opened(
    name: str, cluster: Cluster, folder: Path, index: int = 0, **options: Any
) -> Iterator[WorkerUnderTest]:
    library = LIBRARIES.load(name)
    with worker(library.command(ensure(library)), folder) as client:
        settled = {"session_ms": LONG_MS, **options}
        reply = client.open(nodes=list(nodes(cluster, index)), options=settled)
        assert reply.type == "ok", reply
        yield client


@contextlib.contextmanager
def jammed(cluster: Cluster, index: int) -> Iterator[None]:
    """Nothing goes between worker ``index`` and any server; it comes late, not never."""
    links: list[Link] = [link for link in cluster.links if link.src == f"w{index}"]
    assert len(links) == 3
    for link in links:
        for direction in ("upstream", "downstream"):
            link.add_toxic("latency", direction, {"latency": 3_600_000, "jitter": 0})
    try:
        yield
    finally:
        for link in links:
            link.clear()


def acquire(client: WorkerUnderTest, key: str, hold: str, timeout_ms: int = 0) -> str:
    reply = client.ask("acquire", key=key, hold=hold, timeout_ms=timeout_ms)
    return reply.type if reply.type != "fail" else reply.error or ""


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_the_registry_says_and_keeps_the_rules(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    library, key = LIBRARIES.load(name), f"rules-{name}"
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert one.hello["powers"] == list(library.powers)
        assert one.hello["lease"]["kind"] == library.lease
        assert acquire(one, key, "1") == "ok"
        assert acquire(two, key, "2") == "busy"
        assert acquire(two, key, "3", timeout_ms=300) == "busy"
        assert acquire(two, f"{key}-other", "4") == "ok", "keys are independent"
        number = two.send("acquire", key=key, hold="5", timeout_ms=25_000)
        assert acquire(one, f"{key}-third", "6") == "ok"  # by now the other one waits
        assert one.ask("release", key=key, hold="1").type == "ok"
        reply = two.receive()
        assert (reply.id, reply.type) == (number, "ok"), reply
        assert one.ask("release", key=key, hold="1").type == "fail"
        assert two.ask("close").type == "ok"
        assert acquire(one, key, "7", timeout_ms=5_000) == "ok", "a session takes its locks along"
        assert two.open(nodes=list(nodes(cluster, 1))).type == "ok"
        assert acquire(two, f"{key}-again", "8") == "ok"
        shared_rules(library.powers, one, two, f"{key}-shared")
        assert one.end() == 0


@pytest.mark.parametrize("name", FENCED)
def test_tokens_grow_across_clients(name: str, cluster: Cluster, tmp_path: Path) -> None:
    key = f"token-{name}"
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        tokens = []
        for number in range(6):
            client, hold = (one, two)[number % 2], str(number)
            reply = client.ask("acquire", key=key, hold=hold, timeout_ms=5_000)
            tokens.append(reply.value["token"])
            assert client.ask("release", key=key, hold=hold).type == "ok"
        assert tokens == sorted(set(tokens)), "strictly growing"


@pytest.mark.parametrize("tell_at", ["LOST", "SUSPENDED"])
def test_a_holder_that_is_cut_off_is_told_when_it_asked_to_be(
    tell_at: str, cluster: Cluster, tmp_path: Path
) -> None:
    key = f"told-{tell_at}"
    with (
        opened("kazoo", cluster, tmp_path, 0, session_ms=SHORT_MS, tell_at=tell_at) as one,
        opened("kazoo", cluster, tmp_path, 1) as two,
    ):
        assert acquire(one, key, "1") == "ok"
        with jammed(cluster, 0):
            if tell_at == "SUSPENDED":
                told = one.receive()
                assert (told.event, told.key, told.hold, told.error) == ("lost", key, "1", tell_at)
            assert acquire(two, key, "2", timeout_ms=25_000) == "ok", "the session has ended"
        if tell_at == "LOST":
            told = one.receive()
            assert (told.event, told.key, told.hold, told.error) == ("lost", key, "1", tell_at)
        assert one.ask("release", key=key, hold="1").error == "not-held"
        assert acquire(one, key, "3") == "busy", "the new holder's lock was not touched"


def test_giving_up_without_a_connection_is_unknown(cluster: Cluster, tmp_path: Path) -> None:
    """Its place in the queue may be there still, and become the holder's."""
    with (
        opened("kazoo", cluster, tmp_path, 0, session_ms=SHORT_MS) as one,
        opened("kazoo", cluster, tmp_path, 1) as two,
    ):
        assert acquire(two, "gave-up", "1") == "ok"
        number = one.send("acquire", key="gave-up", hold="2", timeout_ms=1_500)
        with jammed(cluster, 0):
            assert wait_until(lambda: "Connection dropped" in one.log(), timeout_s=25)
        reply = one.receive()
        assert (reply.id, reply.type) == (number, "info"), reply


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("kazoo")])
def test_wrong_options_are_refused_by_name(name: str, cluster: Cluster, tmp_path: Path) -> None:
    library = LIBRARIES.load(name)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"no_such_option": 1}, "no_such_option"),
        ({"session_ms": "2"}, "session_ms"),
        ({"tell_at": "CONNECTED"}, "LOST or SUSPENDED"),
        ({"reconnect_ms_max": 0}, "reconnect_ms_max"),
    ]
    with worker(library.command(ensure(library)), tmp_path) as client:
        for options, word in wrong:
            reply = client.open(nodes=list(nodes(cluster, 0)), options=options)
            assert reply.type == "fail"
            assert word in (reply.error or "")
        nobody = [{"name": "zk1", "host": "127.0.0.1", "port": 1}]
        reply = client.open(nodes=nobody, options={"connect_timeout_ms": 300})
        assert reply.type == "fail"
        assert "cannot connect" in (reply.error or "")
        known = {"session_ms": 5_000, "reconnect_ms_max": None}
        assert client.open(nodes=list(nodes(cluster, 0)), options=known).type == "ok"


def test_each_client_begins_at_its_own_server(cluster: Cluster, tmp_path: Path) -> None:
    """And goes to another when that is gone, with its session and what it holds."""
    own = next(link for link in cluster.links if (link.src, link.dst) == ("w1", "zk2"))
    with (
        opened("kazoo", cluster, tmp_path, 0) as one,
        opened("kazoo", cluster, tmp_path, 1) as two,
    ):
        assert acquire(two, "own", "1") == "ok"
        own.set_enabled(False)
        try:
            started = time.monotonic()
            assert acquire(two, "own-too", "2") == "ok"
            assert time.monotonic() - started < 25
            assert acquire(one, "own", "3") == "busy"
            assert two.ask("release", key="own", hold="1").type == "ok"
        finally:
            own.clear()
