"""Every fault on the backend ``valkey-single`` in the process runtime: it bites and it heals.

How each can fail is tested once, on ``redis-single`` (test_faults_live.py); in containers both
backends go through test_faults_docker.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nemesis.clockshim import build
from tests.compose.local import cluster_up, need
from tests.nemesis.conformance import (
    assert_all_well,
    make,
    put_right,
    shows_and_is_undone,
    targets_of,
    variants_on_servers,
)
from tests.nemesis.worlds import TestWorld, connected, worker_processes

pytestmark = pytest.mark.live

HERE = ("process", "valkey-single")
PLACES = [HERE]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    need("valkey-single")
    folder: Path = tmp_path_factory.mktemp("valkey")
    shim = None if build.why_not() else build.ensure()
    with (
        cluster_up(folder, "valkey-single", clock_shim=shim) as cluster,
        worker_processes(folder, 2) as workers,
    ):
        yield TestWorld(cluster, workers, backend="valkey-single")


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
