"""Every fault that can be done on Redis with Sentinel: it shows, it heals, the cluster is whole.

Aimed at the primary, and at a sentinel where it makes sense: what speaks to a store of data (flush,
memory-pressure ...) fails there, and says so.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from compose.backends.redis_sentinel import SERVERS
from compose.waiting import wait_until
from harness.core.errors import HarnessError
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.compose.local import undo_elsewhere
from tests.nemesis.conformance import (
    CLOCKS,
    CONFIGS,
    UNDOABLE,
    make,
    on_servers,
    variants_on_servers,
)
from tests.nemesis.sentinel import put_right
from tests.nemesis.worlds import TestWorld, connected, containers_world, needs_shim

pytestmark = [pytest.mark.live, pytest.mark.docker]

HERE = ("docker", "redis-sentinel")
ELSEWHERE = ("partition",)  # on every cluster: test_partition_docker.py
PRIMARY = {"node": "primary", "link": "worker:1/primary"}
SENTINEL = {"node": "node:sentinel2", "link": "worker:1/node:sentinel2"}
REPLICAS_LINK, SENTINELS_LINK = "node:redis3/node:redis1", "node:sentinel3/node:redis1"
PLACES = [HERE]
SPEAK_TO_DATA = {*CONFIGS, "flush", "failover"}
VARIANTS = [v for v in variants_on_servers(*HERE) if v[0] not in ELSEWHERE]
# A sentinel whose clock jumped trusts nothing for half a minute (TILT), so those come last.
VARIANTS.sort(key=lambda variant: variant[0] in CLOCKS)
ON_SENTINELS = [variant for variant in VARIANTS if variant[0] not in SPEAK_TO_DATA]
UNDONE = [n for n in on_servers(*HERE) if n in UNDOABLE and n not in ELSEWHERE]
BETWEEN = [v for v in VARIANTS if getattr(FAULTS.load(v[0]), "between_nodes", False)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    folder = tmp_path_factory.mktemp("sentinel")
    with containers_world("redis-sentinel", folder, clocks=True) as here:
        yield here


@pytest.fixture(autouse=True)
def well(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "world" in request.fixturenames:
        put_right(request.getfixturevalue("world"))


def aim(name: str, aims: dict[str, str], world: TestWorld) -> list[str]:
    acts_on = FAULTS.load(name).acts_on
    found = resolve(aims[acts_on], acts_on, world, random.Random(0))
    assert found
    return found


def shows_and_heals(
    world: TestWorld, name: str, params: dict[str, Any], targets: list[str]
) -> None:
    fault = make(name, params)
    reason = fault.can(world)
    if reason:
        pytest.skip(reason)
    needs_shim(name)
    with connected(world):
        fault.inject(world, targets)
        try:
            evidence = fault.evidence(world, targets)
        finally:
            fault.heal(world, targets)
        assert evidence.bit, evidence.says
        assert set(evidence.facts) == set(targets)
        healed = fault.healed(world, targets)
        assert healed.bit, healed.says


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_it_shows_and_heals_on_the_primary(
    world: TestWorld, name: str, params: dict[str, Any]
) -> None:
    shows_and_heals(world, name, params, aim(name, PRIMARY, world))


@pytest.mark.parametrize(("name", "params"), BETWEEN)
@pytest.mark.parametrize("link", [REPLICAS_LINK, SENTINELS_LINK])
def test_it_shows_and_heals_between_nodes(
    world: TestWorld, link: str, name: str, params: dict[str, Any]
) -> None:
    shows_and_heals(world, name, params, resolve(link, "link", world, random.Random(0)))


@pytest.mark.parametrize("name", UNDONE)
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    needs_shim(name)
    fault = make(name)
    targets = aim(name, PRIMARY, world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


@pytest.mark.parametrize("name", ["node-restart", "node-restart-empty", "node-kill", "node-pause"])
def test_it_shows_and_heals_on_a_replica(world: TestWorld, name: str) -> None:
    replica = next(n for n in SERVERS if world.cluster.nodes[n].facts()["role"] == "replica")
    shows_and_heals(world, name, {}, [replica])


@pytest.mark.parametrize("name", sorted(SPEAK_TO_DATA))
def test_what_speaks_to_data_fails_on_a_sentinel(world: TestWorld, name: str) -> None:
    with pytest.raises(HarnessError):
        make(name).inject(world, ["sentinel2"])


@pytest.mark.parametrize("name", ["node-kill", "node-pause"])
def test_a_primary_that_is_gone_is_replaced(world: TestWorld, name: str) -> None:
    old = world.cluster.primary()
    term = world.cluster.nodes["sentinel1"].facts()["term"]
    fault = make(name)
    fault.inject(world, [old])

    def replaced() -> bool:
        with suppress(HarnessError):
            return world.cluster.primary() != old
        return False

    assert wait_until(replaced, timeout_s=20)
    # The sentinel that led the fail-over is believed first; the others hear of it.
    sentinel = world.cluster.nodes["sentinel1"]
    assert wait_until(lambda: sentinel.facts()["term"] > term, timeout_s=10)
    fault.heal(world, [old])
    assert fault.healed(world, [old]).bit
    assert world.cluster.primary() != old, "that it is back does not make it the primary again"


@pytest.mark.parametrize("old", ["killed", "lives"])
def test_a_commanded_failover_raises_the_term(world: TestWorld, old: str) -> None:
    primary = world.cluster.primary()
    fault = make("failover", {"old": old})
    fault.inject(world, [primary])
    evidence = fault.evidence(world, [primary])
    assert evidence.bit, evidence.says
    assert evidence.facts[primary]["promoted"] == world.cluster.primary() != primary
    fault.heal(world, [primary])
    assert fault.healed(world, [primary]).bit


@pytest.mark.parametrize(("name", "params"), ON_SENTINELS)
def test_it_shows_and_heals_on_a_sentinel(
    world: TestWorld, name: str, params: dict[str, Any]
) -> None:
    shows_and_heals(world, name, params, aim(name, SENTINEL, world))
