"""What tests of faults on ZooKeeper share: a client whose session a fault ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clients.environments import ensure
from clients.registry import LIBRARIES
from tests.clients.workers import WorkerUnderTest, worker
from tests.nemesis.conformance import make
from tests.nemesis.worlds import TestWorld


@contextmanager
def kazoo(world: TestWorld, folder: Path) -> Iterator[WorkerUnderTest]:
    """kazoo, as worker 0 of the world."""
    library = LIBRARIES.load("kazoo-fenced")
    with worker(library.command(ensure(library)), folder) as client:
        reply = client.open(nodes=list(world.cluster.endpoints(0)), options={"session_ms": 10_000})
        assert reply.type == "ok", reply
        yield client
        client.ask("close")  # else its session would be there in the next test


def check_expiry(world: TestWorld, client: WorkerUnderTest) -> None:
    """The fault shows, its client is told, and has another session for its next lock."""
    got = client.ask("acquire", key="expire", hold="1", timeout_ms=0)
    assert got.type == "ok", got
    fault = make("session-expire")
    assert fault.can(world) is None
    assert fault.undo(world, ["w0"]) == []
    fault.inject(world, ["w0"])
    evidence = fault.evidence(world, ["w0"])
    assert evidence.bit, evidence.says
    told = client.receive()
    assert (told.event, told.key, told.hold) == ("lost", "expire", "1")
    assert client.ask("release", key="expire", hold="1").error == "not-held"
    again = client.ask("acquire", key="expire", hold="2", timeout_ms=0)
    assert again.value["token"] > got.value["token"], "it has another session"
    assert client.ask("release", key="expire", hold="2").type == "ok"
    fault.heal(world, ["w0"])
    assert fault.healed(world, ["w0"]).bit
