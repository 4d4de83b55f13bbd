"""What every etcd library must do, against a real cluster of three members (process runtime)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clients.environments import ensure
from clients.registry import LIBRARIES
from harness.core.protocols import Cluster, Link
from harness.stage import nodes_of
from tests.clients.workers import WorkerUnderTest, worker
from tests.compose.local import cluster_up, need

pytestmark = pytest.mark.live

# Those in other languages have other options: tests/clients/test_toolchains.py examines them.
NAMES = [
    name
    for name, library in ((name, LIBRARIES.load(name)) for name in LIBRARIES.names())
    if "etcd3" in library.backends and library.language == "python"
]
QUEUES = ("recipe-etcd", "broken-etcd-unchecked-wait")  # they never say "busy"
LONG_MS = 60_000  # longer than any test: nothing expires by accident on a slow machine
SHORT_MS = 2_000  # the shortest that a cluster with these heartbeats grants


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need("etcd3")
    with cluster_up(tmp_path_factory.mktemp("etcd3"), "etcd3", workers=2) as running:
        yield running


class Pair(NamedTuple):
    """Two workers of one library, each open on its own member: etcd1 and etcd2."""

    name: str
    cluster: Cluster
    one: WorkerUnderTest
    two: WorkerUnderTest

    @property
    def refused(self) -> str:
        """What an acquire says that did not wait long enough."""
        queue = "not first in the queue when the time was over"
        return queue if self.name in QUEUES else "busy"


def link(cluster: Cluster, src: str, dst: str) -> Link:
    return next(one for one in cluster.links if (one.src, one.dst) == (src, dst))


def reopen(client: WorkerUnderTest, cluster: Cluster, index: int, **options: Any) -> None:
    assert client.ask("close").type == "ok"
    settled = {"timeout_ms": 10_000, **options}
    reply = client.open(nodes=nodes_of(cluster.endpoints(index), index), options=settled)
    assert reply.type == "ok", reply


@pytest.fixture(scope="module", params=NAMES)
def pair(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    name = str(request.param)
    library = LIBRARIES.load(name)
    argv = library.command(ensure(library))
    with contextlib.ExitStack() as stack:
        clients = []
        for index in (0, 1):
            folder: Path = tmp_path_factory.mktemp(f"{name}-{index}")
            clients.append(stack.enter_context(worker(argv, folder)))
            reopen(clients[-1], cluster, index)
        yield Pair(name, cluster, *clients)
        assert clients[0].end() == 0


def acquire(
    client: WorkerUnderTest, key: str, hold: str, ttl_ms: int = LONG_MS, timeout_ms: int = 0
) -> str:
    reply = client.ask("acquire", key=key, hold=hold, ttl_ms=ttl_ms, timeout_ms=timeout_ms)
    return reply.type if reply.type != "fail" else reply.error or ""


def test_it_is_what_the_registry_says_and_keeps_the_rules(pair: Pair) -> None:
    library, key, (one, two) = LIBRARIES.load(pair.name), f"rules-{pair.name}", pair[2:]
    assert one.hello["powers"] == list(library.powers)
    assert one.hello["lease"]["kind"] == library.lease
    assert acquire(one, key, "1") == "ok"
    assert one.ask("believes", key=key, hold="1").value is True
    assert one.ask("renew", key=key, hold="1", ttl_ms=LONG_MS).type == "ok"
    started = time.monotonic()
    assert acquire(two, key, "2") == pair.refused
    assert time.monotonic() - started < 10, "timeout_ms=0 must not wait"
    assert acquire(two, f"{key}-other", "3") == "ok", "keys are independent"
    assert one.ask("release", key=key, hold="1").type == "ok"
    assert one.ask("release", key=key, hold="1").type == "fail"
    assert acquire(two, key, "4") == "ok"
    reopen(two, pair.cluster, 1)
    assert acquire(one, key, "5") == pair.refused, "a session that ends keeps its locks"
    assert acquire(two, f"{key}-again", "6") == "ok"


def test_a_waiter_is_woken_by_a_release(pair: Pair) -> None:
    key, (one, two) = f"woken-{pair.name}", pair[2:]
    assert acquire(one, key, "w1") == "ok"
    number = two.send("acquire", key=key, hold="w2", ttl_ms=LONG_MS, timeout_ms=25_000)
    assert acquire(one, f"{key}-other", "w3") == "ok"  # by now the other one waits
    assert one.ask("release", key=key, hold="w1").type == "ok"
    released = time.monotonic()
    reply = two.receive()
    assert (reply.id, reply.type) == (number, "ok"), reply
    # python-etcd3 can miss the event and then looks again only at the end of its wait.
    assert pair.name == "python-etcd3" or time.monotonic() - released < 20


def test_a_lease_ends_and_the_former_holder_is_told(pair: Pair) -> None:
    key, (one, two) = f"lease-{pair.name}", pair[2:]
    first = one.ask("acquire", key=key, hold="l1", ttl_ms=SHORT_MS, timeout_ms=0)
    assert first.type == "ok"
    if LIBRARIES.load(pair.name).canary:
        return  # what follows is what it does wrong
    taken = two.ask("acquire", key=key, hold="l2", ttl_ms=LONG_MS, timeout_ms=20_000)
    assert taken.type == "ok"
    assert taken.complete - first.invoke >= SHORT_MS * 1_000_000, "not before its end"
    assert taken.value["token"] > first.value["token"]
    assert one.ask("believes", key=key, hold="l1").value is False
    assert one.ask("renew", key=key, hold="l1", ttl_ms=SHORT_MS).error == "not-held"
    assert one.ask("release", key=key, hold="l1").error == "not-held"
    assert acquire(one, key, "l3") == pair.refused, "the new holder's lock was not touched"


def test_lengths_that_etcd_cannot_give_are_refused(pair: Pair) -> None:
    key, one = f"length-{pair.name}", pair.one
    assert "whole seconds" in acquire(one, key, "t1", ttl_ms=1500)
    assert "shorter than 2000 ms" in acquire(one, key, "t2", ttl_ms=1000)
    assert acquire(one, key, "t3") == "ok", "what was refused left nothing"


def test_wrong_options_are_refused_by_name(pair: Pair) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"no_such_option": 1}, "no_such_option"),
        ({"timeout_ms": "2"}, "timeout_ms"),
        ({"reconnect_ms_max": 0}, "reconnect_ms_max"),
        ({"node": "etcd9"}, "etcd1, etcd2, etcd3"),
    ]
    assert pair.one.ask("close").type == "ok"
    for options, word in wrong:
        reply = pair.one.open(nodes=nodes_of(pair.cluster.endpoints(0), 0), options=options)
        assert reply.type == "fail"
        assert word in (reply.error or "")
    reopen(pair.one, pair.cluster, 0, node="etcd3", reconnect_ms_max=200)
    assert acquire(pair.one, f"options-{pair.name}", "o1") == "ok"
    reopen(pair.one, pair.cluster, 0)


def test_each_client_talks_to_its_own_node(pair: Pair) -> None:
    """With that link alone cut, an acquire fails, and for sure: no transaction went out."""
    key, own = f"own-{pair.name}", link(pair.cluster, "w1", "etcd2")
    reopen(pair.two, pair.cluster, 1, timeout_ms=1000)
    own.set_enabled(False)
    try:
        reply = pair.two.ask("acquire", key=key, hold="n1", ttl_ms=LONG_MS)
        assert reply.type == "fail", reply
        assert "before the lock could be taken" in (reply.error or "")
    finally:
        own.clear()
    deadline = time.monotonic() + 20
    number = 2
    while acquire(pair.two, key, f"n{number}") != "ok":  # gRPC dials again by itself
        assert time.monotonic() < deadline, pair.two.log()
        number += 1
    reopen(pair.two, pair.cluster, 1)


def test_a_lost_answer_is_unknown(pair: Pair) -> None:
    """The transaction arrives, its answer does not: the lock may be free, and here it is."""
    key, own = f"lost-{pair.name}", link(pair.cluster, "w0", "etcd1")
    reopen(pair.one, pair.cluster, 0, timeout_ms=1500)
    assert acquire(pair.one, key, "a1") == "ok"
    own.add_toxic("latency", "downstream", {"latency": 60_000, "jitter": 0})
    try:
        assert pair.one.ask("release", key=key, hold="a1").type == "info"
    finally:
        own.clear()
    assert acquire(pair.two, key, "a2") == "ok", "it was released all the same"
