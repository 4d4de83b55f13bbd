"""The same fault objects in virtual time: no fault knows which runtime it acts in."""

from __future__ import annotations

import random
from typing import Any

import pytest

from clients.sim.world import SimSetup, build
from harness.core.clock import NS_PER_S, ms
from harness.core.errors import HarnessError
from nemesis.base import BaseFault
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.nemesis.worlds import TestWorld

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in FAULTS),
    ("cut-reply", {"how": "silence"}),
    ("latency", {"latency_ms": 30, "direction": "both"}),
    ("latency", {"latency_ms": 1, "direction": "upstream"}),
]
AIMS = {"worker": "worker:0", "node": "primary", "link": "worker:0"}


@pytest.fixture
def setup() -> SimSetup:
    made = build("recipe-redis", workers=3, seed=7)
    made.pool.poll(made.clock.now() + NS_PER_S)  # the workers say hello
    return made


@pytest.fixture
def world(setup: SimSetup) -> TestWorld:
    return TestWorld(
        cluster=setup.cluster,
        workers=list(setup.pool.handles),
        clock=setup.clock,
        runtime="sim",
        backend="sim",
    )


def make(name: str, params: dict[str, Any] | None = None) -> BaseFault:
    fault = FAULTS.load(name)(**(params or {}))
    assert isinstance(fault, BaseFault)
    return fault


def targets_of(fault: BaseFault, world: TestWorld, aim: str | None = None) -> list[str]:
    found = resolve(aim or AIMS[fault.acts_on], fault.acts_on, world, random.Random(0))
    assert found
    return found


@pytest.mark.parametrize(("name", "params"), VARIANTS)
@pytest.mark.parametrize("everyone", [False, True])
def test_it_bites_and_heals(
    world: TestWorld, name: str, params: dict[str, Any], everyone: bool
) -> None:
    fault = make(name, params)
    assert fault.can(world) is None
    every = {"worker": "all-workers", "node": "all-nodes", "link": "all-workers"}
    targets = targets_of(fault, world, every[fault.acts_on] if everyone else None)
    fault.undo(world, targets)
    fault.inject(world, targets)
    evidence = fault.evidence(world, targets)
    assert evidence.bit, evidence.says
    fault.heal(world, targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    assert all(link.toxics() == [] for link in world.cluster.links)
    assert all(link.probe(1000).outcome == "answered" for link in world.cluster.links)
    assert all(worker.status().state == "running" for worker in world.workers)


@pytest.mark.parametrize("name", FAULTS.names())
def test_not_injected_means_no_evidence(world: TestWorld, name: str) -> None:
    fault = make(name)
    before = world.clock.now()
    assert not fault.evidence(world, targets_of(fault, world)).bit
    assert world.clock.now() - before < ms(20_000)  # virtual: it gave up in bounded time


@pytest.mark.parametrize("name", ["sever", "jam", "mute", "latency", "cut-reply"])
def test_cleared_behind_its_back_means_no_evidence(world: TestWorld, name: str) -> None:
    fault = make(name)
    targets = targets_of(fault, world)
    fault.inject(world, targets)
    world.cluster.links[0].clear()
    assert not fault.evidence(world, targets).bit
    assert fault.healed(world, targets).bit


def test_a_restart_with_data_is_refused_where_nothing_is_kept() -> None:
    made = build("recipe-redis", workers=1, seed=7, options={"persistence": "none"})
    world = TestWorld(cluster=made.cluster, workers=[], clock=made.clock, runtime="sim")
    with pytest.raises(HarnessError, match="keeps nothing on disk"):
        make("node-restart").inject(world, ["redis"])


def test_proof_takes_virtual_time_only(world: TestWorld) -> None:
    fault = make("jam")
    targets = targets_of(fault, world)
    before = world.clock.now()
    fault.inject(world, targets)
    assert fault.evidence(world, targets).bit
    assert world.clock.now() - before >= ms(250)  # the silent echo was waited for
