"""Every fault that can be done on Redis with Sentinel as local processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nemesis.registry import FAULTS
from tests.nemesis.conformance import make, on_servers, shows_and_is_undone
from tests.nemesis.quorum import targets_of
from tests.nemesis.sentinel import put_right
from tests.nemesis.worlds import TestWorld, connected, live_world, needs_shim

pytestmark = pytest.mark.live

HERE = ("process", "redis-sentinel")
PLACES = [HERE]
AIMS = {"node": "primary", "link": "worker:1/primary"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    with live_world(tmp_path_factory.mktemp("sentinel"), "redis-sentinel") as (world, _):
        yield world


@pytest.fixture(autouse=True)
def well(world: TestWorld) -> Iterator[None]:
    yield
    put_right(world)


@pytest.mark.parametrize("name", on_servers(*HERE))
def test_it_shows_and_is_undone(world: TestWorld, name: str) -> None:
    needs_shim(name)
    with connected(world):
        targets = targets_of(name, AIMS[FAULTS.load(name).acts_on], world)
        shows_and_is_undone(world, name, {}, targets)


def test_it_shows_on_sentinels_too(world: TestWorld) -> None:
    shows_and_is_undone(world, "mute", {}, ["w1-sentinel2"])
    shows_and_is_undone(world, "node-restart", {}, ["sentinel2"])
    assert make("partition").can(world) is not None
