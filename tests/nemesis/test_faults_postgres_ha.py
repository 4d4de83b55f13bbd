"""Every fault that can be done on a primary and its standby: it shows, it heals, all is whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.core.errors import HarnessError
from harness.core.protocols import Promotable
from tests.compose.local import undo_elsewhere
from tests.nemesis.conformance import UNDOABLE, make, on_servers
from tests.nemesis.postgres import ELSEWHERE, aimed, put_in_order, shows_and_heals, world_of
from tests.nemesis.worlds import TestWorld

pytestmark = [pytest.mark.live, pytest.mark.docker]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    with world_of("postgres-ha", tmp_path_factory) as made:
        yield made


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    yield shared
    put_in_order(shared)


PLACES = [("docker", "postgres-ha")]
NAMES = [name for name in on_servers(*PLACES[0]) if name not in ELSEWHERE]
UNDONE = [name for name in NAMES if name in UNDOABLE]


@pytest.mark.parametrize("name", NAMES)
def test_it_shows_and_heals(world: TestWorld, name: str) -> None:
    shows_and_heals(world, name, {}, aimed(name, world))


@pytest.mark.parametrize("name", ["node-kill", "node-pause", "node-restart", "node-restart-empty"])
def test_a_standby(world: TestWorld, name: str) -> None:
    primary = world.cluster.primary()
    (standby,) = [node for node in world.cluster.nodes if node != primary]
    shows_and_heals(world, name, {}, [standby])
    assert world.cluster.primary() == primary


@pytest.mark.parametrize("name", ["jam", "sever", "mute", "deafen", "cut-reply"])
def test_a_link_between_servers(world: TestWorld, name: str) -> None:
    shows_and_heals(world, name, {}, aimed(name, world, "node:postgres2/node:postgres1"))


@pytest.mark.parametrize("name", UNDONE)
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    fault = make(name)
    reason = fault.can(world)
    if reason:
        pytest.skip(reason)
    targets = aimed(name, world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


def test_a_fail_over_needs_a_primary_and_a_standby(world: TestWorld) -> None:
    primary = world.cluster.primary()
    (standby,) = [node for node in world.cluster.nodes if node != primary]
    with pytest.raises(HarnessError, match=f"{standby} is a replica"):
        make("failover").inject(world, [standby])
    old = world.cluster.nodes[primary]
    assert isinstance(old, Promotable)
    with pytest.raises(HarnessError, match="it is no standby"):
        old.promote()
    world.cluster.nodes[standby].kill()
    with pytest.raises(HarnessError):
        make("failover").inject(world, [primary])
    assert old.facts()["role"] == "primary", "nothing was done to it"


def test_two_primaries_until_it_heals(world: TestWorld) -> None:
    primary = world.cluster.primary()
    fault = make("failover", {"old": "lives"})
    fault.inject(world, [primary])
    evidence = fault.evidence(world, [primary])
    assert evidence.bit, evidence.says
    roles = {node.facts()["role"] for node in world.cluster.nodes.values()}
    assert roles == {"primary"}
    assert world.cluster.primary() != primary, "the one of the higher term counts"
    fault.heal(world, [primary])
    healed = fault.healed(world, [primary])
    assert healed.bit, healed.says
