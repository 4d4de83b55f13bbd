"""What tests of faults on PostgreSQL share: a cluster, clients, and the wait for order."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import Cluster, Link, session_name
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.nemesis import conformance
from tests.nemesis.conformance import make
from tests.nemesis.worlds import TestWorld, containers_world, mend

ELSEWHERE = ("partition",)  # has a file of its own: test_partition_docker.py
AIMS = {"node": "primary", "link": "worker:1"}


@contextmanager
def world_of(backend: str, factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    """The backend in containers under the clock shim, with two idle workers."""
    with containers_world(backend, factory.mktemp(backend), clocks=True) as world:
        yield world


def put_in_order(world: TestWorld) -> None:
    """Whatever a test left: links clean, servers up, one primary and a standby that streams."""
    mend(world)
    assert wait_until(lambda: is_whole(world.cluster), timeout_s=20)


def is_whole(cluster: Cluster) -> bool:
    try:
        facts = [node.facts() for node in cluster.nodes.values()]
    except HarnessError:
        return False
    roles = [fact["role"] for fact in facts]
    streams = roles.count("replica") == 0 or all(fact["streaming"] for fact in facts)
    return roles.count("primary") == 1 and streams


@contextmanager
def clients(world: TestWorld) -> Iterator[None]:
    """One open session through every link of a worker, named as the adapters name theirs."""
    with ExitStack() as stack:
        for link in world.cluster.links:
            if link.src.startswith("w"):
                stack.enter_context(session(link))
        yield


def session(link: Link) -> socket.socket:
    client = socket.create_connection((link.host, link.port), timeout=10)
    words = ["user", "postgres", "database", "postgres"]
    words += ["application_name", session_name(link.port)]
    start = "".join(f"{word}\0" for word in words).encode() + b"\0"
    client.sendall(struct.pack("!ii", len(start) + 8, 3 << 16) + start)
    answer = b""
    while not answer.endswith(b"Z\0\0\0\x05I"):  # ready
        more = client.recv(65536)
        assert more, answer
        answer += more
    return client


def shows_and_heals(
    world: TestWorld, name: str, params: dict[str, Any], targets: list[str]
) -> None:
    fault = make(name, params)
    reason = fault.can(world)
    if reason:
        pytest.skip(reason)
    assert targets
    with clients(world):
        fault.inject(world, targets)
        try:
            evidence = fault.evidence(world, targets)
        finally:
            fault.heal(world, targets)
    assert evidence.bit, evidence.says
    assert set(evidence.facts) == set(targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


def shows_and_is_undone(
    world: TestWorld, name: str, params: dict[str, Any], targets: list[str]
) -> None:
    with clients(world):
        conformance.shows_and_is_undone(world, name, params, targets)


def aimed(name: str, world: TestWorld, aim: str = "") -> list[str]:
    acts_on = FAULTS.load(name).acts_on
    return resolve(aim or AIMS[acts_on], acts_on, world, random.Random(0))
