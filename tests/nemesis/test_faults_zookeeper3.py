"""Every fault that can be done on ZooKeeper: it shows, it heals, there is a leader again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import SessionKeeping
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.clients.workers import WorkerUnderTest
from tests.compose.local import undo_elsewhere
from tests.nemesis.conformance import (
    UNDOABLE,
    make,
    on_servers,
    possible_variants,
    variants_on_servers,
)
from tests.nemesis.quorum import put_right, shows_and_heals, targets_of
from tests.nemesis.worlds import TestWorld, containers_world, needs_shim
from tests.nemesis.zookeeper import check_expiry, kazoo

pytestmark = [pytest.mark.live, pytest.mark.docker]

HERE = ("docker", "zookeeper3")
PLACES = [HERE]
# partition has a file of its own (test_partition_docker.py); session-expire needs a client, and
# is tested below.
ELSEWHERE = ("partition",)
ALSO = ("session-expire",)
CLIENTS = {"node": "node:zk2", "link": "worker:1/node:zk2"}
PEERS = "node:zk1/node:zk2"
UNDONE = [n for n in on_servers(*HERE) if n in UNDOABLE and n not in ELSEWHERE]
BETWEEN = [
    variant
    for variant in possible_variants(*HERE)
    if getattr(FAULTS.load(variant[0]), "between_nodes", False)
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    folder = tmp_path_factory.mktemp("zookeeper3")
    with containers_world("zookeeper3", folder, clocks=True) as made:
        yield made


@pytest.fixture(autouse=True)
def well(world: TestWorld) -> Iterator[None]:
    yield
    put_right(world)


@pytest.fixture
def client(world: TestWorld, tmp_path: Path) -> Iterator[WorkerUnderTest]:
    with kazoo(world, tmp_path) as client:
        yield client


@pytest.mark.parametrize(
    ("name", "params"), [v for v in variants_on_servers(*HERE) if v[0] not in ELSEWHERE]
)
def test_it_shows_and_heals(world: TestWorld, name: str, params: dict[str, Any]) -> None:
    needs_shim(name)
    aim = CLIENTS[FAULTS.load(name).acts_on]
    shows_and_heals(world, name, params, targets_of(name, aim, world))


@pytest.mark.parametrize(("name", "params"), BETWEEN)
def test_it_shows_on_a_link_between_servers(
    world: TestWorld, name: str, params: dict[str, Any]
) -> None:
    targets = resolve(PEERS, "link", world, random.Random(0))
    assert targets == ["zk1-zk2"]
    shows_and_heals(world, name, params, targets)


@pytest.mark.parametrize("name", ["node-kill", "node-restart-empty"])
def test_all_servers_at_once(world: TestWorld, name: str) -> None:
    """Each is ready only when enough of the others are up again."""
    shows_and_heals(world, name, {}, targets_of(name, "all-nodes", world))


@pytest.mark.parametrize("name", UNDONE)
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    needs_shim(name)
    fault = make(name)
    acts_on = FAULTS.load(name).acts_on
    targets = targets_of(name, PEERS if acts_on == "link" else CLIENTS[acts_on], world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


def test_a_wiped_server_gets_its_data_back_from_the_others(world: TestWorld) -> None:
    leader = world.cluster.nodes[world.cluster.primary()]
    leader.leave_mark("kept")
    follower = next(node for node in world.cluster.nodes.values() if node is not leader)
    shows_and_heals(world, "node-restart-empty", {}, [follower.name])
    assert follower.has_mark("kept")


def test_a_holder_is_told_that_its_session_was_ended(
    world: TestWorld, client: WorkerUnderTest
) -> None:
    check_expiry(world, client)


def test_a_session_that_is_there_is_told_from_one_that_is_not(
    world: TestWorld, client: WorkerUnderTest
) -> None:
    assert client.ask("acquire", key="there", hold="1", timeout_ms=0).type == "ok"
    leader = world.cluster.nodes[world.cluster.primary()]
    link = next(link for link in world.cluster.links if link.src == "w0")
    assert isinstance(leader, SessionKeeping)
    (identity,) = leader.sessions(link)
    assert leader.has_session(identity)
    assert not leader.has_session("0x1234567890")
    with pytest.raises(HarnessError, match="no server knows a session of w1"):
        make("session-expire").inject(world, ["w1"])


@pytest.mark.parametrize("name", ["node-kill", "node-pause"])
def test_a_leader_that_is_gone_is_followed_by_another(world: TestWorld, name: str) -> None:
    leader = world.cluster.primary()
    term = int(world.cluster.nodes[leader].facts()["term"])
    fault = make(name)
    fault.inject(world, [leader])

    def followed() -> bool:
        try:
            new = world.cluster.primary()
        except HarnessError:
            return False
        return new != leader and int(world.cluster.nodes[new].facts()["term"]) > term

    assert wait_until(followed, timeout_s=15)
    fault.heal(world, [leader])
