"""Every fault on a backend of several nodes: it hits those it names and spares the others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.compose.local import undo_elsewhere
from tests.nemesis.conformance import (
    LASTS,
    assert_all_well,
    make,
    on_servers,
    put_right,
    shows_and_is_undone,
)
from tests.nemesis.worlds import (
    TestWorld,
    connected,
    containers_world,
    live_world,
)

pytestmark = pytest.mark.live

PLACES = [("process", "redlock5"), ("docker", "redlock5")]
ONE = {"worker": "worker:0", "node": "node:redis3", "link": "worker:1/node:redis3"}
MANY = {"worker": "all-workers", "node": "majority", "link": "worker:0/minority"}
NAMES = on_servers(*PLACES[0])
ALSO = ("blackhole",)  # in containers alone
ON_NODES = [n for n in NAMES if FAULTS.load(n).acts_on == "node"]
DOWN = ("node-kill", "node-pause")  # while they last, the server does not answer


@pytest.fixture(
    scope="module", params=["process", pytest.param("docker", marks=pytest.mark.docker)]
)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestWorld]:
    folder = tmp_path_factory.mktemp("redlock5")
    if request.param == "docker":
        with containers_world("redlock5", folder, clocks=True) as here:
            yield here
        return
    with live_world(folder, "redlock5") as (here, _):
        yield here


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    with connected(shared):
        yield replace(shared)
        put_right(shared)


def aimed(name: str, aims: dict[str, str], world: TestWorld) -> list[str]:
    acts_on = FAULTS.load(name).acts_on
    return resolve(aims[acts_on], acts_on, world, random.Random(0))


@pytest.mark.parametrize("aims", [ONE, MANY], ids=["one", "many"])
@pytest.mark.parametrize("name", NAMES)
def test_it_bites_and_heals(world: TestWorld, name: str, aims: dict[str, str]) -> None:
    fault = make(name)
    assert fault.can(world) is None
    targets = aimed(name, aims, world)
    fault.inject(world, targets)
    evidence = fault.evidence(world, targets)
    assert evidence.bit, evidence.says
    assert set(evidence.facts) == set(targets)
    fault.heal(world, targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    assert_all_well(world)


@pytest.mark.parametrize("name", ON_NODES)
def test_the_other_servers_are_spared(world: TestWorld, name: str) -> None:
    others = {n: node for n, node in world.cluster.nodes.items() if n != "redis3"}
    before = {n: (node.status(), node.facts()["run_id"]) for n, node in others.items()}
    fault = make(name)
    fault.inject(world, ["redis3"])
    assert {n: (node.status(), node.facts()["run_id"]) for n, node in others.items()} == before
    for link in world.cluster.links:
        if link.dst != "redis3":
            assert link.probe(1000).outcome == "answered"
        elif name in DOWN:
            assert link.probe(100).outcome != "answered"
    fault.heal(world, ["redis3"])


@pytest.mark.parametrize("name", [n for n in NAMES if n in LASTS])
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    fault = make(name)
    targets = aimed(name, MANY, world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    assert_all_well(world)


def test_a_blackhole_shows_and_is_undone(world: TestWorld) -> None:
    if world.runtime == "process":
        assert make("blackhole").can(world) is not None
        return
    shows_and_is_undone(world, "blackhole", {}, ["redis3"])
    assert_all_well(world)


def test_a_worker_cut_from_a_minority_reaches_the_others(world: TestWorld) -> None:
    fault = make("sever")
    targets = resolve("worker:0/minority", "link", world, random.Random(7))
    assert len(targets) == 2
    fault.inject(world, targets)
    assert fault.evidence(world, targets).bit
    for link in world.cluster.links:
        reached = link.probe(1000).outcome == "answered"
        assert reached == (link.name not in targets)
    fault.heal(world, targets)
