"""Every fault that can be done on etcd's members as local processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compose.waiting import wait_until
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import Markable
from nemesis.registry import FAULTS
from tests.compose.local import cluster_up, need, undo_elsewhere
from tests.nemesis.conformance import UNDOABLE, make, on_servers, variants_on_servers
from tests.nemesis.quorum import (
    check_that_a_member_is_replaced,
    put_right,
    shows_and_heals,
    targets_of,
)
from tests.nemesis.worlds import TestWorld, worker_processes

pytestmark = pytest.mark.live

HERE = ("process", "etcd3")
PLACES = [HERE]
ONE = {"node": "primary", "link": "worker:1/node:etcd2"}
MANY = {"node": "all-nodes", "link": "worker:0/majority"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    need("etcd3")
    folder = tmp_path_factory.mktemp("etcd3")
    with (
        cluster_up(folder, "etcd3", workers=2) as cluster,
        worker_processes(folder, 2) as workers,
    ):
        yield TestWorld(cluster, workers, runtime="process", backend="etcd3")


@pytest.fixture(autouse=True)
def well(world: TestWorld) -> Iterator[None]:
    yield
    put_right(world)


@pytest.mark.parametrize(("name", "params"), variants_on_servers(*HERE))
def test_it_shows_and_heals(world: TestWorld, name: str, params: dict[str, Any]) -> None:
    targets = targets_of(name, ONE[FAULTS.load(name).acts_on], world)
    shows_and_heals(world, name, params, targets)


@pytest.mark.parametrize("name", ["node-kill", "node-pause", "node-restart", "sever"])
def test_many_at_once(world: TestWorld, name: str) -> None:
    shows_and_heals(world, name, {}, targets_of(name, MANY[FAULTS.load(name).acts_on], world))


@pytest.mark.parametrize("name", [n for n in on_servers(*HERE) if n in UNDOABLE])
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    fault = make(name)
    targets = targets_of(name, ONE[FAULTS.load(name).acts_on], world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


def test_a_full_store_takes_no_writes_of_any_member(world: TestWorld) -> None:
    """The alarm is the cluster's, and a second fault of the kind would prove nothing."""
    fault = make("store-full")
    fault.inject(world, ["etcd1"])
    assert fault.evidence(world, list(world.cluster.nodes)[:1]).bit
    other = world.cluster.nodes["etcd3"]
    assert isinstance(other, Markable)
    assert wait_until(lambda: refuses(other), timeout_s=5)
    with pytest.raises(HarnessError, match="refuses writes already"):
        make("store-full").inject(world, ["etcd2"])
    fault.heal(world, ["etcd1"])
    assert fault.healed(world, ["etcd1", "etcd3"]).bit


def refuses(node: Markable) -> bool:
    try:
        node.leave_mark("full")
    except AnsweredError as error:
        return "space exceeded" in str(error)
    return False


def test_a_member_that_lost_its_data_is_replaced(world: TestWorld) -> None:
    check_that_a_member_is_replaced(world)
