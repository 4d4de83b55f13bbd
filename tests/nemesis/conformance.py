"""What every fault must pass in every runtime; the runtimes' test files share it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

from harness.core.protocols import Commandable
from harness.core.undo import perform
from harness.places import Here
from nemesis.base import BaseFault, LinkFault
from nemesis.clock import ClockFault
from nemesis.commands import ConfigFault, takes_writes
from nemesis.memory_pressure import POLICIES, ballast
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.nemesis.worlds import TestWorld, straighten

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in FAULTS),
    ("cut-reply", {"how": "silence"}),
    ("latency", {"latency_ms": 30, "direction": "upstream"}),
    ("latency", {"latency_ms": 30, "direction": "both"}),
    ("slow", {"rate_kb_s": 10}),
    *((f"{who}clock-jump", {"direction": "backward"}) for who in ("", "worker-")),
    *((f"{who}clock-skew", {"direction": "slow"}) for who in ("", "worker-")),
    ("clock-skew", {"rate_ppm": 10_000}),
    ("worker-starve", {"share_percent": 60, "period_ms": 50}),
    *(("memory-pressure", {"policy": policy}) for policy in POLICIES[1:]),
]
LINKS = [
    name
    for name in FAULTS
    if issubclass(FAULTS.load(name), LinkFault) and name != "backend-kill"  # done by the server
]
WITH_TOXICS = [name for name in LINKS if name != "sever"]
CONFIGS = [name for name in FAULTS if issubclass(FAULTS.load(name), ConfigFault)]
# What goes on until it is undone; the others are over when they have happened.
CLOCKS = [name for name in FAULTS if issubclass(FAULTS.load(name), ClockFault)]
LASTS = [*LINKS, *CONFIGS, *CLOCKS, "worker-pause", "worker-block-loop", "node-pause", "blackhole"]
UNDOABLE = [*LASTS, "partition", "store-full", "worker-starve"]


def possible(names: Iterable[str], runtime: str, backend: str) -> list[str]:
    """Those that can be done there; that the others are refused is tested by the table."""
    return [name for name in names if FAULTS.load(name)().can(Here(runtime, backend)) is None]


def possible_variants(runtime: str, backend: str) -> list[tuple[str, dict[str, Any]]]:
    """The same for faults with parameters."""
    return [v for v in VARIANTS if possible([v[0]], runtime, backend)]


def make(name: str, params: dict[str, Any] | None = None) -> BaseFault:
    fault = FAULTS.load(name)(**(params or {}))
    assert isinstance(fault, BaseFault)
    return fault


def on_servers(runtime: str, backend: str) -> list[str]:
    """Faults that can be done there and whose effect a server or link of that backend shows; those
    on workers are the same everywhere (test_faults_worker.py)."""
    return [n for n in possible(FAULTS, runtime, backend) if FAULTS.load(n).acts_on != "worker"]


def variants_on_servers(runtime: str, backend: str) -> list[tuple[str, dict[str, Any]]]:
    """The same with parameters."""
    names = on_servers(runtime, backend)
    return [variant for variant in VARIANTS if variant[0] in names]


def shows_and_is_undone(
    world: TestWorld, name: str, params: dict[str, Any], targets: list[str]
) -> None:
    """It bites, and its undo steps, which know nothing of the fault, put everything right; what is
    over when it has happened has none, and is healed."""
    fault = make(name, params)
    assert fault.can(world) is None
    steps = json.loads(json.dumps(list(fault.undo(world, targets))))
    assert steps or name not in UNDOABLE
    fault.inject(world, targets)
    try:
        evidence = fault.evidence(world, targets)
    finally:
        for step in steps:
            perform(step)
        if name not in UNDOABLE:
            fault.heal(world, targets)
    assert evidence.bit, evidence.says
    assert set(evidence.facts) == set(targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    fault.heal(world, targets)  # nothing is left to do


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
        assert takes_writes(node).bit
        assert isinstance(node, Commandable)
        assert node.command("EXISTS", *ballast()) == "0"
    for link in world.cluster.links:
        assert link.toxics() == []
        assert link.probe(1000).outcome == "answered"
    for worker in world.workers:
        assert worker.status().state == "running"


START = {
    "maxmemory": "0",
    "maxmemory-policy": "noeviction",
    "maxmemory-samples": "5",
    "min-replicas-to-write": "0",
}
"""Settings of a new server that faults change."""


def settings_of(world: TestWorld) -> dict[str, str]:
    """The same settings of the (only) server, as they are now."""
    (node,) = world.cluster.nodes.values()
    assert isinstance(node, Commandable)
    return {name: node.command("CONFIG", "GET", name).split("\n")[1] for name in START}


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
        assert isinstance(node, Commandable)
        for setting, value in START.items():
            node.command("CONFIG", "SET", setting, value)
    straighten([*world.workers, *world.cluster.nodes.values()])
    for link in world.cluster.links:
        link.clear()
