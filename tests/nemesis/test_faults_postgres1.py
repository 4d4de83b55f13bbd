"""Every fault that can be done on one PostgreSQL server: it shows, and it heals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.nemesis.conformance import on_servers
from tests.nemesis.postgres import ELSEWHERE, aimed, put_in_order, shows_and_is_undone, world_of
from tests.nemesis.worlds import TestWorld

pytestmark = [pytest.mark.live, pytest.mark.docker]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    with world_of("postgres1", tmp_path_factory) as made:
        yield made


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    yield shared
    put_in_order(shared)


PLACES = [("docker", "postgres1")]
NAMES = [name for name in on_servers(*PLACES[0]) if name not in ELSEWHERE]


@pytest.mark.parametrize("name", NAMES)
def test_it_shows_and_is_undone(world: TestWorld, name: str) -> None:
    shows_and_is_undone(world, name, {}, aimed(name, world))
