"""Every fault that can be done on one PostgreSQL as a local process, alone and behind PgBouncer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.core.errors import HarnessError
from tests.nemesis.conformance import make, on_servers
from tests.nemesis.postgres import aimed, clients, put_in_order, shows_and_is_undone
from tests.nemesis.worlds import TestWorld, live_world, needs_shim

pytestmark = pytest.mark.live

PLACES = [("process", "postgres1"), ("process", "postgres-pgbouncer")]
NAMES = on_servers(*PLACES[0])  # the same on both
ENDS_ONE_CLIENT = (1, 24)  # the first PgBouncer that can


@pytest.fixture(scope="module", params=[backend for _, backend in PLACES])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestWorld]:
    backend = str(request.param)
    assert on_servers("process", backend) == NAMES
    with live_world(tmp_path_factory.mktemp(backend), backend) as (world, _):
        yield world


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    yield shared
    put_in_order(shared)


@pytest.mark.parametrize("name", NAMES)
def test_it_shows_and_is_undone(world: TestWorld, name: str) -> None:
    needs_shim(name)
    pooler = world.cluster.versions.get("pgbouncer", "")
    old = pooler and tuple(map(int, pooler.split(".")[:2])) < ENDS_ONE_CLIENT
    if name == "backend-kill" and old:
        with clients(world), pytest.raises(HarnessError, match=r"is older than 1\.24"):
            make(name).inject(world, aimed(name, world))
        return
    shows_and_is_undone(world, name, {}, aimed(name, world))
