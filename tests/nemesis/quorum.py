"""What the fault tests of clusters with a leader share: one cluster, put right after each test."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from compose.docker_runtime import DockerRuntime
from compose.registry import family_for
from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import Skewable
from harness.registries import BACKENDS
from nemesis.clockshim import build
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.compose.local import DiskLedger
from tests.nemesis.conformance import make
from tests.nemesis.worlds import TestWorld, worker_processes


@contextmanager
def quorum_world(
    backend: str, folder: Path, *, workers: int = 2, clocks: bool = False
) -> Iterator[TestWorld]:
    """The backend in containers; clocks: its servers run under the clock shim, if there is one."""
    runtime = DockerRuntime()
    reason = runtime.can(backend)
    if reason:
        pytest.skip(reason)
    if clocks and not build.why_not():
        runtime.clock_shim = build.ensure()
    ledger = DiskLedger(folder / "ledger.jsonl")
    cluster = runtime.up(backend, {}, workers=workers, run_dir=folder, ledger=ledger)
    try:
        with worker_processes(folder, workers) as handles:
            yield TestWorld(cluster, handles, runtime="docker", backend=backend)
    finally:
        cluster.down()


def put_right(world: TestWorld) -> None:
    """Whatever a test left: links clean, servers up, a leader that takes writes."""
    for worker in world.workers:
        worker.resume()
        worker.start()
    for link in world.cluster.links:
        link.clear()
    for node in world.cluster.nodes.values():
        if node.status().state == "paused":
            node.resume()
        if node.status().state == "dead":
            node.start()
        if isinstance(node, Skewable):
            with suppress(HarnessError):  # started without the shim
                node.set_clock(offset_ns=0, rate_ppm=0)
    assert wait_until(lambda: is_whole(world), timeout_s=20)


def is_whole(world: TestWorld) -> bool:
    """Each server can do its work, and one of them leads."""
    spec = BACKENDS.load(world.backend)
    try:
        for node, said in zip(world.cluster.nodes.values(), spec.nodes, strict=True):
            family_for(spec, said).check_ready(node.host, node.port)
        world.cluster.primary()
    except HarnessError:
        return False
    return True


def targets_of(name: str, aim: str, world: TestWorld) -> list[str]:
    found = resolve(aim, FAULTS.load(name).acts_on, world, random.Random(0))
    assert found
    return found


def shows_and_heals(
    world: TestWorld, name: str, params: dict[str, Any], targets: list[str]
) -> None:
    fault = make(name, params)
    reason = fault.can(world)
    if reason:
        pytest.skip(reason)
    fault.inject(world, targets)
    try:
        evidence = fault.evidence(world, targets)
    finally:
        fault.heal(world, targets)
    assert evidence.bit, evidence.says
    assert set(evidence.facts) == set(targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
