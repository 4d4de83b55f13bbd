"""Every fault on the backend ``valkey-single`` in the process runtime: it bites and it heals.

How each can fail is tested once, on ``redis-single`` (test_faults_live.py); in containers both
backends go through test_faults_docker.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.nemesis.conformance import (
    assert_all_well,
    make,
    put_right,
    shows_and_is_undone,
    targets_of,
    variants_on_servers,
)
from tests.nemesis.worlds import TestWorld, connected, live_world

pytestmark = pytest.mark.live

HERE = ("process", "valkey-single")
PLACES = [HERE]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    with live_world(tmp_path_factory.mktemp("valkey"), "valkey-single") as (world, _):
        yield world


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    with connected(shared):
        yield replace(shared)
        put_right(shared)


@pytest.mark.parametrize(("name", "params"), variants_on_servers(*HERE))
def test_it_shows_and_is_undone(world: TestWorld, name: str, params: dict[str, Any]) -> None:
    targets = targets_of(make(name), world, everyone=True)
    shows_and_is_undone(world, name, params, targets)
    assert_all_well(world)
