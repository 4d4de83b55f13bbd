"""Every fault that can be done on etcd: it shows, it heals, the cluster has its leader again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from compose.waiting import wait_until
from harness.core.errors import HarnessError
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.compose.local import undo_elsewhere
from tests.nemesis.conformance import (
    UNDOABLE,
    make,
    on_servers,
    possible_variants,
    variants_on_servers,
)
from tests.nemesis.quorum import (
    check_that_a_member_is_replaced,
    put_right,
    shows_and_heals,
    targets_of,
)
from tests.nemesis.worlds import TestWorld, containers_world

pytestmark = [pytest.mark.live, pytest.mark.docker]

HERE = ("docker", "etcd3")
PLACES = [HERE]
ELSEWHERE = ("partition",)  # has a file of its own: test_partition_docker.py
CLIENTS = {"node": "node:etcd2", "link": "worker:1/node:etcd2"}
MANY = {"node": "all-nodes", "link": "worker:0/minority"}
PEERS = "node:etcd1/node:etcd2"
UNDONE = [n for n in on_servers(*HERE) if n in UNDOABLE and n not in ELSEWHERE]
BETWEEN = [
    variant
    for variant in possible_variants(*HERE)
    if getattr(FAULTS.load(variant[0]), "between_nodes", False)
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    with containers_world("etcd3", tmp_path_factory.mktemp("etcd3")) as made:
        yield made


@pytest.fixture(autouse=True)
def well(world: TestWorld) -> Iterator[None]:
    yield
    put_right(world)


@pytest.mark.parametrize(
    ("name", "params"), [v for v in variants_on_servers(*HERE) if v[0] not in ELSEWHERE]
)
def test_it_shows_and_heals(world: TestWorld, name: str, params: dict[str, Any]) -> None:
    aim = CLIENTS[FAULTS.load(name).acts_on]
    shows_and_heals(world, name, params, targets_of(name, aim, world))


@pytest.mark.parametrize(("name", "params"), BETWEEN)
def test_it_shows_on_a_link_between_members(
    world: TestWorld, name: str, params: dict[str, Any]
) -> None:
    targets = resolve(PEERS, "link", world, random.Random(0))
    assert targets == ["etcd1-etcd2"]
    shows_and_heals(world, name, params, targets)


@pytest.mark.parametrize("name", ["node-kill", "node-pause", "node-restart", "sever"])
def test_many_at_once(world: TestWorld, name: str) -> None:
    """Also all members: each is ready only when enough of the others are up again."""
    shows_and_heals(world, name, {}, targets_of(name, MANY[FAULTS.load(name).acts_on], world))


@pytest.mark.parametrize("name", UNDONE)
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    fault = make(name)
    acts_on = FAULTS.load(name).acts_on
    targets = targets_of(name, PEERS if acts_on == "link" else CLIENTS[acts_on], world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


@pytest.mark.parametrize("name", ["node-kill", "node-pause", "sever"])
def test_a_leader_that_is_gone_is_followed_by_another(world: TestWorld, name: str) -> None:
    leader = world.cluster.primary()
    term = int(world.cluster.nodes[leader].facts()["term"])
    if name == "sever":
        targets = [link.name for link in world.cluster.links if leader in (link.src, link.dst)]
    else:
        targets = [leader]
    fault = make(name)
    fault.inject(world, targets)

    def followed() -> bool:
        try:
            new = world.cluster.primary()
        except HarnessError:
            return False
        return new != leader and int(world.cluster.nodes[new].facts()["term"]) > term

    assert wait_until(followed, timeout_s=15)
    fault.heal(world, targets)


def test_a_flush_takes_every_key_and_leaves_the_revision(world: TestWorld) -> None:
    node = world.cluster.nodes["etcd1"]
    fault = make("flush")
    fault.inject(world, ["etcd1"])
    assert fault.evidence(world, ["etcd1"]).bit
    assert node.facts()["keys"] == 0


def test_a_member_that_lost_its_data_is_replaced(world: TestWorld) -> None:
    check_that_a_member_is_replaced(world)
