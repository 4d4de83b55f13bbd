"""What the fault tests of clusters with a leader share: one cluster, put right after each test."""

from __future__ import annotations

import random
from typing import Any

import pytest

from compose.registry import family_for
from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import Markable
from harness.registries import BACKENDS
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.nemesis.conformance import make
from tests.nemesis.worlds import TestWorld, mend, straighten


def put_right(world: TestWorld) -> None:
    """Whatever a test left: links clean, servers up, a leader that takes writes."""
    mend(world)
    straighten(world.cluster.nodes.values())
    assert wait_until(lambda: is_whole(world), timeout_s=20)


def is_whole(world: TestWorld) -> bool:
    """Each server can do its work, and one of them leads."""
    spec = BACKENDS.load(world.backend)
    try:
        for node, said in zip(world.cluster.nodes.values(), spec.nodes, strict=True):
            family_for(spec, said).check_ready(node.host, node.port)
        world.cluster.primary()
    except HarnessError:
        return False
    return True


def targets_of(name: str, aim: str, world: TestWorld) -> list[str]:
    found = resolve(aim, FAULTS.load(name).acts_on, world, random.Random(0))
    assert found
    return found


def shows_and_heals(
    world: TestWorld, name: str, params: dict[str, Any], targets: list[str]
) -> None:
    fault = make(name, params)
    reason = fault.can(world)
    if reason:
        pytest.skip(reason)
    fault.inject(world, targets)
    try:
        evidence = fault.evidence(world, targets)
    finally:
        fault.heal(world, targets)
    assert evidence.bit, evidence.says
    assert set(evidence.facts) == set(targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


def check_that_a_member_is_replaced(world: TestWorld) -> None:
    """It comes back as another member with nothing of its own, gets all from the others, and may
    lose its data a second time; two of three at once are refused before anything is done."""
    others = [node for name, node in world.cluster.nodes.items() if name != "etcd2"]
    keeper = others[0]
    assert isinstance(keeper, Markable)
    keeper.leave_mark("kept")
    for _ in range(2):
        fault = make("node-restart-empty")
        fault.inject(world, ["etcd2"])
        evidence = fault.evidence(world, ["etcd2"])
        assert evidence.bit, evidence.says
        assert "another member id" in evidence.says
        assert fault.healed(world, ["etcd2"]).bit
        member = world.cluster.nodes["etcd2"]
        assert isinstance(member, Markable)
        assert member.has_mark("kept")
    before = [node.status() for node in world.cluster.nodes.values()]
    with pytest.raises(HarnessError, match="no majority"):
        make("node-restart-empty").inject(world, ["etcd1", "etcd2"])
    assert [node.status() for node in world.cluster.nodes.values()] == before
