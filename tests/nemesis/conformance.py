"""What every fault must pass in every runtime; the runtimes' test files share it."""

from __future__ import annotations

import random
from typing import Any

from nemesis.base import BaseFault
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.nemesis.worlds import TestWorld

# Parameters besides the defaults that are worth a run of their own.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in FAULTS),
    ("cut-reply", {"how": "silence"}),
    ("latency", {"latency_ms": 30, "direction": "upstream"}),
    ("latency", {"latency_ms": 30, "direction": "both"}),
]
WITH_TOXICS = ["cut-reply", "jam", "latency", "mute"]
LASTS = [name for name in FAULTS if FAULTS.load(name).acts_on == "link"] + [
    "worker-pause",
    "node-pause",
]


def make(name: str, params: dict[str, Any] | None = None) -> BaseFault:
    fault = FAULTS.load(name)(**(params or {}))
    assert isinstance(fault, BaseFault)
    return fault


def targets_of(fault: BaseFault, world: TestWorld, *, everyone: bool = False) -> list[str]:
    one = {"worker": "worker:0", "node": "primary", "link": "worker:0"}
    every = {"worker": "all-workers", "node": "all-nodes", "link": "all-workers"}
    aim = (every if everyone else one)[fault.acts_on]
    found = resolve(aim, fault.acts_on, world, random.Random(0))
    assert found
    return found


def assert_all_well(world: TestWorld) -> None:
    for node in world.cluster.nodes.values():
        assert node.status().state == "running"
    for link in world.cluster.links:
        assert link.toxics() == []
        assert link.probe(1000).outcome == "answered"
    for worker in world.workers:
        assert worker.status().state == "running"


def put_right(world: TestWorld) -> None:
    """Makes the world as new without the faults' help."""
    for worker in world.workers:
        worker.resume()
        worker.start()
    for node in world.cluster.nodes.values():
        if node.status().state == "paused":
            node.resume()
        if node.status().state == "dead":
            node.start()
    for link in world.cluster.links:
        link.clear()
