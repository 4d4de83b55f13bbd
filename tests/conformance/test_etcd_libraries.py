"""What every etcd library must do, against a real cluster of three members (process runtime)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clients.environments import ensure
from clients.registry import LIBRARIES
from harness.core.protocols import Cluster
from tests.clients.workers import WorkerUnderTest, worker
from tests.compose.local import cluster_up, need

pytestmark = pytest.mark.live

NAMES = [name for name in LIBRARIES.names() if "etcd3" in LIBRARIES.load(name).backends]
RIGHT = [name for name in NAMES if not LIBRARIES.load(name).canary]
QUEUES = ("recipe-etcd", "broken-etcd-unchecked-wait")  # they never say "busy"
LONG_MS = 60_000  # longer than any test: nothing expires by accident on a slow machine
SHORT_MS = 2_000  # the shortest that a cluster with these heartbeats grants


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need("etcd3")
    with cluster_up(tmp_path_factory.mktemp("etcd3"), "etcd3", workers=2) as running:
        yield running


def nodes(cluster: Cluster, index: int) -> Sequence[dict[str, Any]]:
    found = cluster.endpoints(index)
    return [{**node, "own": at == index % len(found)} for at, node in enumerate(found)]


@contextlib.contextmanager
def opened(
    name: str, cluster: Cluster, folder: Path, index: int = 0, **options: Any
) -> Iterator[WorkerUnderTest]:
    """Worker ``index`` with a client on its own node."""
    library = LIBRARIES.load(name)
    with worker(library.command(ensure(library)), folder) as client:
        settled = {"timeout_ms": 10_000, **options}
        reply = client.open(nodes=list(nodes(cluster, index)), options=settled)
        assert reply.type == "ok", reply
        yield client


def acquire(
    client: WorkerUnderTest, key: str, hold: str, ttl_ms: int = LONG_MS, timeout_ms: int = 0
) -> str:
    reply = client.ask("acquire", key=key, hold=hold, ttl_ms=ttl_ms, timeout_ms=timeout_ms)
    return reply.type if reply.type != "fail" else reply.error or ""


def refused(name: str) -> str:
    return "not first in the queue when the time was over" if name in QUEUES else "busy"


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_the_registry_says_and_keeps_the_rules(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    library, key = LIBRARIES.load(name), f"rules-{name}"
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert one.hello["powers"] == list(library.powers)
        assert one.hello["lease"]["kind"] == library.lease
        assert acquire(one, key, "1") == "ok"
        assert one.ask("believes", key=key, hold="1").value is True
        assert one.ask("renew", key=key, hold="1", ttl_ms=LONG_MS).type == "ok"
        started = time.monotonic()
        assert acquire(two, key, "2") == refused(name)
        assert time.monotonic() - started < 10, "timeout_ms=0 must not wait"
        assert acquire(two, f"{key}-other", "3") == "ok", "keys are independent"
        assert one.ask("release", key=key, hold="1").type == "ok"
        again = one.ask("release", key=key, hold="1")
        assert again.type == "fail"
        assert acquire(two, key, "4") == "ok"
        assert two.ask("close").type == "ok"
        assert acquire(one, key, "5") == refused(name), "a session that ends keeps its locks"
        assert two.open(nodes=list(nodes(cluster, 1))).type == "ok"
        assert acquire(two, f"{key}-again", "6") == "ok"
        assert one.end() == 0


@pytest.mark.parametrize("name", RIGHT)
def test_a_waiter_is_woken_by_a_release(name: str, cluster: Cluster, tmp_path: Path) -> None:
    key = f"woken-{name}"
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        assert acquire(one, key, "1") == "ok"
        number = two.send("acquire", key=key, hold="2", ttl_ms=LONG_MS, timeout_ms=25_000)
        assert acquire(one, f"{key}-other", "3") == "ok"  # by now the other one waits
        assert one.ask("release", key=key, hold="1").type == "ok"
        released = time.monotonic()
        reply = two.receive()
        assert (reply.id, reply.type) == (number, "ok"), reply
        assert time.monotonic() - released < 20


@pytest.mark.parametrize("name", RIGHT)
def test_a_lease_ends_and_the_former_holder_is_told(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    key = f"lease-{name}"
    with opened(name, cluster, tmp_path, 0) as one, opened(name, cluster, tmp_path, 1) as two:
        first = one.ask("acquire", key=key, hold="1", ttl_ms=SHORT_MS, timeout_ms=0)
        assert first.type == "ok"
        taken = two.ask("acquire", key=key, hold="2", ttl_ms=LONG_MS, timeout_ms=20_000)
        assert taken.type == "ok"
        assert taken.complete - first.invoke >= SHORT_MS * 1_000_000, "not before its end"
        assert taken.value["token"] > first.value["token"]
        assert one.ask("believes", key=key, hold="1").value is False
        assert one.ask("renew", key=key, hold="1", ttl_ms=SHORT_MS).error == "not-held"
        assert one.ask("release", key=key, hold="1").error == "not-held"
        assert acquire(one, key, "3") == refused(name), "the new holder's lock was not touched"


@pytest.mark.parametrize("name", RIGHT)
def test_lengths_that_etcd_cannot_give_are_refused(
    name: str, cluster: Cluster, tmp_path: Path
) -> None:
    with opened(name, cluster, tmp_path) as client:
        assert "whole seconds" in acquire(client, f"length-{name}", "1", ttl_ms=1500)
        assert "shorter than 2000 ms" in acquire(client, f"length-{name}", "2", ttl_ms=1000)
        assert acquire(client, f"length-{name}", "3") == "ok", "what was refused left nothing"


@pytest.mark.parametrize("name", RIGHT)
def test_wrong_options_are_refused_by_name(name: str, cluster: Cluster, tmp_path: Path) -> None:
    library = LIBRARIES.load(name)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"no_such_option": 1}, "no_such_option"),
        ({"timeout_ms": "2"}, "timeout_ms"),
        ({"reconnect_ms_max": 0}, "reconnect_ms_max"),
        ({"node": "etcd9"}, "etcd1, etcd2, etcd3"),
    ]
    with worker(library.command(ensure(library)), tmp_path) as client:
        for options, word in wrong:
            reply = client.open(nodes=list(nodes(cluster, 0)), options=options)
            assert reply.type == "fail"
            assert word in (reply.error or "")
        known = {"node": "etcd2", "timeout_ms": 500, "reconnect_ms_max": 200}
        assert client.open(nodes=list(nodes(cluster, 0)), options=known).type == "ok"


@pytest.mark.parametrize("name", RIGHT)
def test_each_client_talks_to_its_own_node(name: str, cluster: Cluster, tmp_path: Path) -> None:
    """With that link alone cut, an acquire fails, and for sure: no transaction went out."""
    own = next(link for link in cluster.links if (link.src, link.dst) == ("w1", "etcd2"))
    with opened(name, cluster, tmp_path, 1, timeout_ms=1000) as client:
        own.set_enabled(False)
        try:
            reply = client.ask("acquire", key=f"own-{name}", hold="1", ttl_ms=LONG_MS)
            assert reply.type == "fail", reply
            assert "before the lock could be taken" in (reply.error or "")
        finally:
            own.clear()
        deadline = time.monotonic() + 20
        number = 2
        while acquire(client, f"own-{name}", str(number)) != "ok":  # gRPC dials again by itself
            assert time.monotonic() < deadline, client.log()
            number += 1


@pytest.mark.parametrize("name", RIGHT)
def test_a_lost_answer_is_unknown(name: str, cluster: Cluster, tmp_path: Path) -> None:
    """The transaction arrives, its answer does not: the lock may be held, and here it is."""
    own = next(link for link in cluster.links if (link.src, link.dst) == ("w0", "etcd1"))
    key = f"lost-{name}"
    with (
        opened(name, cluster, tmp_path, 0, timeout_ms=1500) as one,
        opened(name, cluster, tmp_path, 1) as two,
    ):
        assert acquire(one, key, "1") == "ok"
        own.add_toxic("latency", "downstream", {"latency": 60_000, "jitter": 0})
        try:
            assert one.ask("release", key=key, hold="1").type == "info"
        finally:
            own.clear()
        assert acquire(two, key, "2") == "ok", "it was released all the same"
