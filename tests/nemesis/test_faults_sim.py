"""The same fault objects in virtual time: no fault knows which runtime it acts in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clients.recipes.base import ServerError
from clients.recipes.redis_lock import RELEASE
from clients.sim.world import SimSetup, build
from harness.core.clock import NS_PER_S, ms
from harness.core.errors import HarnessError
from harness.core.protocols import Skewable
from nemesis.registry import FAULTS
from tests.nemesis.conformance import (
    CONFIGS,
    LINKS,
    assert_all_well,
    make,
    possible,
    possible_variants,
    targets_of,
)
from tests.nemesis.worlds import TestWorld, connected

HERE = ("sim", "sim")
PLACES = [HERE]


@pytest.fixture
def setup() -> SimSetup:
    made = build("recipe-redis", workers=3, seed=7)
    made.pool.poll(made.clock.now() + NS_PER_S)  # the workers say hello
    return made


@pytest.fixture
def world(setup: SimSetup) -> Iterator[TestWorld]:
    made = TestWorld(
        cluster=setup.cluster,
        workers=list(setup.pool.handles),
        clock=setup.clock,
        runtime="sim",
        backend="sim",
    )
    with connected(made):
        yield made


@pytest.mark.parametrize(("name", "params"), possible_variants(*HERE))
@pytest.mark.parametrize("everyone", [False, True])
def test_it_bites_and_heals(
    world: TestWorld, name: str, params: dict[str, Any], everyone: bool
) -> None:
    fault = make(name, params)
    assert fault.can(world) is None
    targets = targets_of(fault, world, everyone=everyone)
    fault.undo(world, targets)
    fault.inject(world, targets)
    evidence = fault.evidence(world, targets)
    assert evidence.bit, evidence.says
    fault.heal(world, targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    assert_all_well(world)


@pytest.mark.parametrize("name", possible(FAULTS, *HERE))
def test_not_injected_means_no_evidence(world: TestWorld, name: str) -> None:
    fault = make(name)
    before = world.clock.now()
    assert not fault.evidence(world, targets_of(fault, world)).bit
    assert world.clock.now() - before < ms(20_000)  # virtual: it gave up in bounded time


@pytest.mark.parametrize("name", LINKS)
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


@pytest.mark.parametrize("name", possible(CONFIGS, *HERE))
def test_a_restart_of_the_server_ends_what_was_configured(world: TestWorld, name: str) -> None:
    fault = make(name)
    fault.inject(world, ["redis"])
    assert fault.evidence(world, ["redis"]).bit
    world.cluster.nodes["redis"].kill()
    world.cluster.nodes["redis"].start()
    assert not fault.evidence(world, ["redis"]).bit


def test_read_only_refuses_writes_inside_scripts_too(world: TestWorld, setup: SimSetup) -> None:
    store = setup.cluster.store
    store.execute(("SET", "k", "me"))
    fault = make("read-only")
    fault.inject(world, ["redis"])
    assert isinstance(store.answer(("EVAL", RELEASE, ("k",), ("me",))), ServerError)
    assert store.execute(("GET", "k")) == "me"
    fault.heal(world, ["redis"])
    assert store.execute(("EVAL", RELEASE, ("k",), ("me",))) == 1


def test_a_step_of_the_clock_ends_a_lease_and_a_fast_clock_shortens_it(
    world: TestWorld, setup: SimSetup
) -> None:
    store, clock = setup.cluster.store, setup.clock
    store.execute(("SET", "k", "me", "PX", 5_000))
    fault = make("clock-jump", {"offset_ms": 6_000})
    fault.inject(world, ["redis"])
    assert store.execute(("GET", "k")) is None
    fault.heal(world, ["redis"])
    skew = make("clock-skew", {"rate_ppm": 500_000})
    store.execute(("SET", "k", "me", "PX", 3_000))
    skew.inject(world, ["redis"])
    start_ns = clock.now()
    clock.sleep_until(start_ns + ms(1_990))
    assert store.execute(("GET", "k")) == "me"
    clock.sleep_until(start_ns + ms(2_010))
    assert store.execute(("GET", "k")) is None


def test_a_clock_set_otherwise_is_no_evidence(world: TestWorld) -> None:
    fault = make("clock-jump", {"offset_ms": 6_000})
    fault.inject(world, ["redis"])
    node = world.cluster.nodes["redis"]
    assert isinstance(node, Skewable)
    node.set_clock(offset_ns=ms(5_000), rate_ppm=0)
    assert not fault.evidence(world, ["redis"]).bit
