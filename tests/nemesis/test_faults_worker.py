"""Faults on workers are the same on every backend: shown by a world whose cluster none may touch.

A worker is a process of this machine in both real runtimes, whatever it talks to.  So these faults
are tested once, where it is certain that no server had a hand in it; test_cells.py counts that for
each backend.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.core.protocols import Cluster
from nemesis.registry import FAULTS
from tests.compose.local import undo_elsewhere
from tests.nemesis.conformance import VARIANTS, make
from tests.nemesis.worlds import TestWorld, needs_shim, worker_processes

pytestmark = pytest.mark.live

# The one that speaks to the service, about a session of the worker's.
WITH_SERVERS = ("session-expire",)
NAMES = [
    name for name in FAULTS if FAULTS.load(name).acts_on == "worker" and name not in WITH_SERVERS
]
# A kill is over when it has happened; starving has its own test of undo: test_worker_starve.py.
UNDONE = [name for name in NAMES if name not in ("worker-kill", "worker-starve")]


class OutOfBounds:
    """In the place of a cluster."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a fault on workers looked at cluster.{name}")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    nothing: Any = OutOfBounds()
    cluster: Cluster = nothing
    with worker_processes(tmp_path_factory.mktemp("workers"), 2) as workers:
        yield TestWorld(cluster, workers)


@pytest.fixture
def world(shared: TestWorld, request: pytest.FixtureRequest) -> Iterator[TestWorld]:
    needs_shim(request.node.callspec.params["name"])
    yield shared
    for worker in shared.workers:
        worker.resume()
        worker.start()


@pytest.mark.parametrize(("name", "params"), [v for v in VARIANTS if v[0] in NAMES])
def test_it_bites_and_heals(world: TestWorld, name: str, params: dict[str, Any]) -> None:
    fault = make(name, params)
    fault.inject(world, ["w0"])
    evidence = fault.evidence(world, ["w0"])
    assert evidence.bit, evidence.says
    fault.heal(world, ["w0"])
    healed = fault.healed(world, ["w0"])
    assert healed.bit, healed.says
    assert world.workers[0].status().state == "running"


@pytest.mark.parametrize("name", UNDONE)
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    fault = make(name)
    steps = fault.undo(world, ["w1"])
    fault.inject(world, ["w1"])
    assert fault.evidence(world, ["w1"]).bit
    undo_elsewhere(steps)
    healed = fault.healed(world, ["w1"])
    assert healed.bit, healed.says
