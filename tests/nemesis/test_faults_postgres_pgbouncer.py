"""Every fault that can be done on PostgreSQL behind PgBouncer: it shows, and it heals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.nemesis.conformance import on_servers
from tests.nemesis.postgres import (
    ELSEWHERE,
    aimed,
    put_in_order,
    shows_and_heals,
    shows_and_is_undone,
    world_of,
)
from tests.nemesis.worlds import TestWorld

pytestmark = [pytest.mark.live, pytest.mark.docker]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    with world_of("postgres-pgbouncer", tmp_path_factory) as made:
        yield made


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    yield shared
    put_in_order(shared)


PLACES = [("docker", "postgres-pgbouncer")]
NAMES = [name for name in on_servers(*PLACES[0]) if name not in ELSEWHERE]


@pytest.mark.parametrize("name", NAMES)
def test_it_shows_and_is_undone(world: TestWorld, name: str) -> None:
    shows_and_is_undone(world, name, {}, aimed(name, world))


@pytest.mark.parametrize("name", ["node-kill", "node-pause"])
def test_on_the_pooler(world: TestWorld, name: str) -> None:
    shows_and_heals(world, name, {}, ["pgbouncer"])


@pytest.mark.parametrize("name", ["jam", "sever", "mute", "deafen", "cut-reply"])
def test_between_pooler_and_server(world: TestWorld, name: str) -> None:
    shows_and_heals(world, name, {}, aimed(name, world, "node:pgbouncer/node:postgres"))
