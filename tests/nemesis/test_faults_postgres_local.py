"""Every fault that can be done on PostgreSQL as local processes, a primary and its standby."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compose.process_node import ProcessNode
from harness.core.undo import kill_marked_step, perform, process_state, process_tree
from tests.compose.local import cluster_up, need, undo_elsewhere
from tests.nemesis.conformance import UNDOABLE, make, on_servers
from tests.nemesis.postgres import aimed, put_in_order, shows_and_heals
from tests.nemesis.worlds import TestWorld, live_world, needs_shim

pytestmark = pytest.mark.live

HERE = ("process", "postgres-ha")
PLACES = [HERE]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    with live_world(tmp_path_factory.mktemp("postgres"), "postgres-ha") as (world, _):
        yield world


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    yield shared
    put_in_order(shared)


@pytest.mark.parametrize("name", on_servers(*HERE))
def test_it_shows_and_heals(world: TestWorld, name: str) -> None:
    needs_shim(name)
    shows_and_heals(world, name, {}, aimed(name, world))


@pytest.mark.parametrize("name", [n for n in on_servers(*HERE) if n in UNDOABLE])
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    fault = make(name)
    targets = aimed(name, world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


def test_a_pause_stops_the_sessions_too(world: TestWorld) -> None:
    """Each is a process of its own: one that went on would serve its client in the pause."""
    (name,) = aimed("node-pause", world)
    node = world.cluster.nodes[name]
    assert isinstance(node, ProcessNode)
    node.pause()
    try:
        pids = process_tree(node._server.pid)
        assert len(pids) > 4
        assert {process_state(pid) for pid in pids} == {"T"}
    finally:
        node.resume()


def test_a_paused_server_is_killed_with_its_sessions(tmp_path: Path) -> None:
    need("postgres1")
    with cluster_up(tmp_path, "postgres1") as cluster:
        node = cluster.nodes["postgres"]
        assert isinstance(node, ProcessNode)
        pids = process_tree(node._server.pid)
        node.pause()
        perform(kill_marked_step(cluster._run))
        assert {process_state(pid) for pid in pids} <= {None, "Z"}
