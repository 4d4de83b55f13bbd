"""What every library on one PostgreSQL must do, against a real server (process runtime)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.environments import ensure
from clients.registry import LIBRARIES
from compose.waiting import wait_until
from harness.core.protocols import Cluster, Sessional
from tests.clients.workers import WorkerUnderTest, worker
from tests.compose.local import cluster_up, need

pytestmark = pytest.mark.live

# Those that run on the cluster, too, are tested there (test_postgres_libraries.py).
NAMES = [name for name in LIBRARIES.names() if LIBRARIES.load(name).backends == ("postgres1",)]
OF_A_SESSION = [name for name in NAMES if LIBRARIES.load(name).lease == "connection"]
SLOW_TO_SAY_BUSY = ("django-pglock",)  # a wait that ended is no observation of its
TTL_MS = 60_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need("postgres1")
    with cluster_up(tmp_path_factory.mktemp("postgres1"), "postgres1", workers=2) as running:
        yield running


@contextlib.contextmanager
def opened(name: str, cluster: Cluster, folder: Path, index: int = 0) -> Iterator[WorkerUnderTest]:
    library = LIBRARIES.load(name)
    with worker(library.command(ensure(library)), folder) as client:
        reply = client.open(nodes=list(cluster.endpoints(index)))
        assert reply.type == "ok", reply
        yield client


def acquire(
    client: WorkerUnderTest, key: str, hold: str, timeout_ms: int = 0, ttl_ms: int = TTL_MS
) -> str:
    reply = client.ask("acquire", key=key, hold=hold, timeout_ms=timeout_ms, ttl_ms=ttl_ms)
    return reply.type if reply.type != "fail" else reply.error or ""


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_the_registry_says_and_keeps_the_rules(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    library, key = LIBRARIES.load(name), f"rules-{name}"
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert one.hello["powers"] == list(library.powers)
        assert one.hello["lease"] == {"kind": library.lease, "ttl_ms": None}
        assert acquire(one, key, "1") == "ok"
        assert acquire(two, key, "2") == "busy"
        started = time.monotonic()
        late = "not acquired in time" if name in SLOW_TO_SAY_BUSY else "busy"
        assert acquire(two, key, "3", timeout_ms=300) == late
        assert 0.29 < time.monotonic() - started < 10
        assert acquire(two, f"{key}-other", "4") == "ok", "keys are independent"
        if "renew" in library.powers:
            assert one.ask("renew", key=key, hold="1", ttl_ms=TTL_MS).type == "ok"
        if "believes" in library.powers:
            assert one.ask("believes", key=key, hold="1").value is True
        assert one.ask("release", key=key, hold="1").type == "ok"
        assert one.ask("release", key=key, hold="1").type == "fail"
        assert acquire(two, key, "5", timeout_ms=3000) == "ok"
        assert acquire(one, key, "6") == "busy"
        assert two.ask("close").type == "ok"
        kept = library.lease == "ttl"
        assert acquire(one, key, "7", timeout_ms=2000) == ("busy" if kept else "ok")
        assert two.open(nodes=list(cluster.endpoints(1))).type == "ok"
        assert acquire(two, f"{key}-again", "8") == "ok"
        assert one.end() == 0


@pytest.mark.parametrize("name", NAMES)
def test_unknown_options_are_refused(name: str, cluster: Cluster, tmp_path: Path) -> None:
    with opened(name, cluster, tmp_path) as one:
        assert one.ask("close").type == "ok"
        reply = one.open(nodes=list(cluster.endpoints(0)), options={"no_such_option": 1})
        assert reply.type == "fail"
        assert "no_such_option" in (reply.error or "")


@pytest.mark.parametrize("name", OF_A_SESSION)
def test_a_lock_goes_with_the_session_that_the_server_ended(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    """Whatever the library says then, it may not say that it released the lock."""
    key, server = f"ended-{name}", next(iter(cluster.nodes.values()))
    link = next(link for link in cluster.links if link.src == "w0")
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert acquire(one, key, "1") == "ok"
        assert isinstance(server, Sessional)
        for session in server.sessions(link):
            server.end_session(link, session)
        assert acquire(two, key, "2", timeout_ms=10_000) == "ok"
        reply = one.receive() if "signals-loss" in one.hello["powers"] else None
        assert reply is None or (reply.event, reply.hold) == ("lost", "1")
        assert one.ask("release", key=key, hold="1").type in ("info", "fail")
        assert one.ask("close").type in ("ok", "info")
        assert one.open(nodes=list(cluster.endpoints(0))).type == "ok"
        assert acquire(one, key, "3") == "busy"
        assert two.ask("release", key=key, hold="2").type == "ok"
        assert acquire(one, key, "4") == "ok"


def test_a_row_whose_holder_died_is_taken_over(cluster: Cluster, tmp_path: Path) -> None:
    name, key = "postgres-mutex", "dead"
    with opened(name, cluster, tmp_path, 1) as two:
        with opened(name, cluster, tmp_path, 0) as one:
            assert acquire(one, key, "1", ttl_ms=1000) == "ok"
            assert acquire(two, key, "2", ttl_ms=1000, timeout_ms=1500) == "busy", "it beats"
        assert acquire(two, key, "3", ttl_ms=1000, timeout_ms=10_000) == "ok"


@pytest.mark.parametrize("name", ["asyncpg", "psycopg"])
def test_a_wait_that_is_granted_as_it_times_out_leaves_no_lock(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    """PostgreSQL reports the time-out and the session has the lock all the same.

    To have both in one moment, the waiting server process is stopped while they happen.
    """
    server: Any = next(iter(cluster.nodes.values()))
    waiting = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    granted = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = "
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert acquire(one, "k", "1") == "ok"
        began = time.monotonic()
        two.send("acquire", key="k", hold="2", timeout_ms=1500, ttl_ms=TTL_MS)
        assert wait_until(lambda: server.command(waiting).isdigit(), timeout_s=10)
        pid = int(server.command(waiting))
        os.kill(pid, signal.SIGSTOP)
        try:
            assert one.ask("release", key="k", hold="1").type == "ok"
            assert server.command(f"{granted}{pid}") == "1"
            assert wait_until(lambda: time.monotonic() - began > 2, timeout_s=10)
        finally:
            os.kill(pid, signal.SIGCONT)
        reply = two.receive()
        assert (reply.type, reply.error) == ("fail", "busy"), "the test did not get its moment"
        assert acquire(one, "k", "3") == "ok", "nobody has it"
