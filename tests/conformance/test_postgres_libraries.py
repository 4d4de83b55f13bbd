"""What every library on PostgreSQL must do, against a primary and a standby in containers."""

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
from harness.core.protocols import Cluster, Sessional
from tests.clients.workers import WorkerUnderTest, worker
from tests.compose.local import DiskLedger

pytestmark = [pytest.mark.live, pytest.mark.docker]

NAMES = [name for name in LIBRARIES.names() if "postgres-ha" in LIBRARIES.load(name).backends]
FENCED = [name for name in NAMES if LIBRARIES.load(name).fencing]
ONE_LOCK = ("psycopg-xact",)  # a connection has one transaction


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    reason = DockerRuntime().can("postgres-ha")
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("postgres")
    ledger = DiskLedger(folder / "ledger.jsonl")
    running = DockerRuntime().up("postgres-ha", {}, workers=2, run_dir=folder, ledger=ledger)
    try:
        yield running
    finally:
        running.down()


@contextlib.contextmanager
def opened(
    name: str, cluster: Cluster, folder: Path, index: int = 0, **options: Any
) -> Iterator[WorkerUnderTest]:
    library = LIBRARIES.load(name)
    with worker(library.command(ensure(library)), folder) as client:
        reply = client.open(nodes=list(cluster.endpoints(index)), options=options)
        assert reply.type == "ok", reply
        yield client


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
        assert one.hello["lease"] == {"kind": library.lease, "ttl_ms": None}
        got = one.ask("acquire", key=key, hold="1", timeout_ms=0)
        assert got.type == "ok"
        assert isinstance(got.value["token"], int if library.fencing else type(None))
        assert acquire(two, key, "2") == "busy"
        started = time.monotonic()
        assert acquire(two, key, "3", timeout_ms=300) == "busy"
        assert 0.29 < time.monotonic() - started < 10
        assert acquire(two, f"{key}-other", "4") == "ok", "keys are independent"
        assert two.ask("release", key=f"{key}-other", hold="4").type == "ok"
        assert one.ask("release", key=key, hold="1").type == "ok"
        assert one.ask("release", key=key, hold="1").type == "fail"
        assert acquire(two, key, "5", timeout_ms=300) == "ok"
        assert acquire(one, key, "6") == "busy"
        assert two.ask("close").type == "ok"
        assert acquire(one, key, "7", timeout_ms=10_000) == "ok", "the lock went with its session"
        assert two.open(nodes=list(cluster.endpoints(1))).type == "ok"
        assert acquire(two, f"{key}-again", "8") == "ok"
        assert one.end() == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_second_lock_of_one_client(name: str, cluster: Cluster, tmp_path: Path) -> None:
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert acquire(one, f"a-{name}", "1") == "ok"
        second = acquire(one, f"b-{name}", "2")
        assert second == "ok" if name not in ONE_LOCK else "has one transaction" in second
        assert acquire(two, f"a-{name}", "3") == "busy", "the first is still held"


@pytest.mark.parametrize("name", NAMES)
def test_a_waiter_is_woken_by_a_release(name: str, cluster: Cluster, tmp_path: Path) -> None:
    key = f"woken-{name}"
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert acquire(one, key, "1") == "ok"
        number = two.send("acquire", key=key, hold="2", timeout_ms=25_000)
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        primary: Any = cluster.nodes["postgres1"]
        assert wait_until(lambda: primary.command(waiting) == "1", timeout_s=10)
        assert one.ask("release", key=key, hold="1").type == "ok"
        reply = two.receive()
        assert (reply.id, reply.type) == (number, "ok"), reply


@pytest.mark.parametrize("name", FENCED)
def test_tokens_grow_across_clients_and_keys(name: str, cluster: Cluster, tmp_path: Path) -> None:
    tokens = []
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        for number in range(6):
            client, key = (one, two)[number % 2], f"token-{name}-{number % 3}"
            reply = client.ask("acquire", key=key, hold=str(number), timeout_ms=0)
            tokens.append(reply.value["token"])
            client.ask("release", key=key, hold=str(number))
    assert tokens == sorted(set(tokens)), "strictly growing"


@pytest.mark.parametrize("name", NAMES)
def test_a_session_that_the_server_ended_is_unknown_and_its_lock_is_free(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    key, primary = f"ended-{name}", cluster.nodes["postgres1"]
    link = next(link for link in cluster.links if (link.src, link.dst) == ("w0", "postgres1"))
    assert isinstance(primary, Sessional)
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert acquire(one, key, "1") == "ok"
        sessions = primary.sessions(link)
        assert len(sessions) == (2 if name == "psycopg-xact" else 1), "one is for its tokens"
        for session in sessions:
            primary.end_session(link, session)
        assert acquire(two, key, "2", timeout_ms=10_000) == "ok"
        reply = one.ask("release", key=key, hold="1")
        assert reply.type == "info", reply
        assert acquire(one, key, "3") == "info", "the connection is gone, and nothing is certain"
        assert one.ask("close").type == "ok"
        assert one.open(nodes=list(cluster.endpoints(0))).type == "ok"
        assert acquire(one, key, "4") == "busy"


@pytest.mark.parametrize("name", NAMES)
def test_the_server_that_takes_writes_is_found(name: str, cluster: Cluster, tmp_path: Path) -> None:
    reverse: Sequence[Any] = list(reversed(cluster.endpoints(0)))
    assert [node["name"] for node in reverse] == ["postgres2", "postgres1"]
    library = LIBRARIES.load(name)
    with worker(library.command(ensure(library)), tmp_path) as client:
        assert client.open(nodes=reverse).type == "ok"
        assert acquire(client, f"found-{name}", "1") == "ok"
        assert int(cluster.nodes["postgres1"].facts()["keys"]) >= 1
        assert int(cluster.nodes["postgres2"].facts()["keys"]) == 0
        assert client.ask("close").type == "ok"
        reply = client.open(nodes=reverse[:1] * 2)  # twice the standby: nobody takes writes
        assert reply.type == "fail"
        assert "cannot connect: postgres2" in (reply.error or "")


@pytest.mark.parametrize("name", NAMES)
def test_wrong_options_are_refused_by_name(name: str, cluster: Cluster, tmp_path: Path) -> None:
    library = LIBRARIES.load(name)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"no_such_option": 1}, "no_such_option"),
        ({"connect_timeout_s": "2"}, "connect_timeout_s"),
        ({"tcp_user_timeout_ms": -1}, "must not be negative"),
        ({"node": "postgres9"}, "postgres1, postgres2"),
        ({"database": "nowhere"}, "nowhere"),
        ({"user": "nobody"}, "nobody"),
    ]
    with worker(library.command(ensure(library)), tmp_path) as client:
        for options, word in wrong:
            reply = client.open(nodes=list(cluster.endpoints(0)), options=options)
            assert reply.type == "fail"
            assert word in (reply.error or "")
        known = {"node": "postgres1", "connect_timeout_s": 3, "tcp_user_timeout_ms": 9000}
        assert client.open(nodes=list(cluster.endpoints(0)), options=known).type == "ok"
