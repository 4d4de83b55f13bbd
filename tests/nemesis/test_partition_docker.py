"""Partitions and faults on links between nodes, on every cluster whose nodes talk to each other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from compose.registry import BACKENDS
from compose.waiting import wait_until
from harness.core import limits
from harness.core.errors import HarnessError
from harness.registries import has_peers
from nemesis.targets import resolve
from tests.compose.local import undo_elsewhere
from tests.nemesis.conformance import make
from tests.nemesis.worlds import FixedView, TestWorld, containers_world

pytestmark = [pytest.mark.live, pytest.mark.docker]

CLUSTERS = [name for name in BACKENDS if has_peers(name)]
PLACES = [("docker", name) for name in CLUSTERS]
ALSO = ("partition",)  # the only one whose undo is looked at here
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("partition", {}, "primary"),
    ("partition", {"how": "sever", "clients": "rest"}, "primary"),
    ("partition", {"direction": "in"}, "primary"),
    ("partition", {"direction": "out", "clients": "target"}, "any-node"),
    ("partition", {"clients": "holder-with-target"}, "any-node"),
    ("partition", {"shape": "ring"}, "all-nodes"),
    ("partition", {"shape": "bridge", "rotate": 1}, "all-nodes"),
    ("jam", {}, "all-nodes/primary"),
    ("sever", {}, "all-nodes/all-nodes"),
    ("latency", {}, "all-nodes/all-nodes"),
]


@pytest.fixture(scope="module", params=CLUSTERS)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestWorld]:
    folder = tmp_path_factory.mktemp("partition")
    view = FixedView(holding=[1])
    with containers_world(str(request.param), folder, view=view) as here:
        yield here


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    yield replace(shared)
    for link in shared.cluster.links:
        link.clear()


def aim(target: str, acts_on: str, world: TestWorld) -> list[str]:
    """What it means now; a cluster that was just put together again may have no primary yet."""
    found: list[str] = []

    def resolved() -> bool:
        found[:] = resolve(target, acts_on, world, random.Random(1))
        return bool(found)

    assert wait_until(resolved, timeout_s=limits.NODE_READY_TIMEOUT_S)
    return found


def possible(world: TestWorld, params: dict[str, Any]) -> bool:
    # A ring or bridge of two is none; the fault then says so.
    return len(world.cluster.nodes) > 2 or params.get("shape", "split") == "split"


@pytest.mark.parametrize(("kind", "params", "target"), CASES)
def test_it_bites_and_heals(
    world: TestWorld, kind: str, params: dict[str, Any], target: str
) -> None:
    fault = make(kind, params)
    assert fault.can(world) is None
    targets = aim(target, fault.acts_on, world)
    if not possible(world, params):
        with pytest.raises(HarnessError, match="nothing to be cut"):
            fault.inject(world, targets)
        return
    fault.inject(world, targets)
    evidence = fault.evidence(world, targets)
    assert evidence.bit, evidence.says
    fault.heal(world, targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    assert all(link.toxics() == [] for link in world.cluster.links)


def test_undone_by_another_process_it_is_healed_and_has_no_evidence(
    world: TestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = make("partition", {"clients": "rest"})
    targets = aim("primary", "node", world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    monkeypatch.setattr(limits, "EVIDENCE_TIMEOUT_MS", 200)
    assert not fault.evidence(world, targets).bit
