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
from tests.compose.local import cluster_up, need, undo_elsewhere
from tests.nemesis.conformance import (
    assert_all_well,
    make,
    possible_variants,
    put_right,
    targets_of,
)
from tests.nemesis.worlds import TestWorld, connected, worker_processes

pytestmark = pytest.mark.live

HERE = ("process", "valkey-single")


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


@pytest.mark.parametrize(("name", "params"), possible_variants(*HERE))
def test_it_bites_and_heals(world: TestWorld, name: str, params: dict[str, Any]) -> None:
    fault = make(name, params)
    assert fault.can(world) is None
    targets = targets_of(fault, world, everyone=True)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    evidence = fault.evidence(world, targets)
    assert evidence.bit, evidence.says
    fault.heal(world, targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    undo_elsewhere(steps)  # after the heal there is nothing left to do
    assert_all_well(world)
