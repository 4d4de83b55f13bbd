"""Every fault that can be done on ZooKeeper's servers as local processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nemesis.registry import FAULTS
from tests.nemesis.conformance import on_servers, shows_and_is_undone
from tests.nemesis.quorum import put_right, targets_of
from tests.nemesis.worlds import TestWorld, live_world, needs_shim
from tests.nemesis.zookeeper import check_expiry, kazoo

pytestmark = pytest.mark.live

HERE = ("process", "zookeeper3")
PLACES = [HERE]
ALSO = ("session-expire",)
ROUNDS = 5
AIMS = {"node": "primary", "link": "worker:1/node:zk2"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    with live_world(tmp_path_factory.mktemp("zookeeper3"), "zookeeper3") as (world, _):
        yield world


@pytest.fixture(autouse=True)
def well(world: TestWorld) -> Iterator[None]:
    yield
    put_right(world)


@pytest.mark.parametrize("name", on_servers(*HERE))
def test_it_shows_and_is_undone(world: TestWorld, name: str) -> None:
    needs_shim(name)
    shows_and_is_undone(world, name, {}, targets_of(name, AIMS[FAULTS.load(name).acts_on], world))


def test_a_session_that_is_ended_is_lost_to_its_holder(world: TestWorld, tmp_path: Path) -> None:
    """More than once: its client comes back while the session is being ended, or just after."""
    with kazoo(world, tmp_path) as client:
        for _ in range(ROUNDS):
            check_expiry(world, client)
