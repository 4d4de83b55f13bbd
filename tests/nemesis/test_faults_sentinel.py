"""Every fault that can be done on Redis with Sentinel: it shows, it heals, the cluster is whole.

Aimed at the primary, and at a sentinel where it makes sense: what speaks to a store of data (flush,
memory-pressure ...) fails there, and says so.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from compose.backends.redis_sentinel import SERVERS, formed
from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import Cluster, Commandable, Node, Skewable
from nemesis.clockshim import build
from nemesis.registry import FAULTS
from nemesis.targets import resolve
from tests.compose.local import cluster_up, need, undo_elsewhere
from tests.nemesis.conformance import (
    CLOCKS,
    CONFIGS,
    LASTS,
    START,
    make,
    possible,
    possible_variants,
)
from tests.nemesis.worlds import TestWorld, connected, containers_world, mend, worker_processes

pytestmark = [pytest.mark.live, pytest.mark.docker]

HERE = ("docker", "redis-sentinel")
ELSEWHERE = ("partition",)  # on every cluster: test_partition_docker.py
PRIMARY = {"worker": "worker:0", "node": "primary", "link": "worker:1/primary"}
SENTINEL = {"node": "node:sentinel2", "link": "worker:1/node:sentinel2"}
REPLICAS_LINK, SENTINELS_LINK = "node:redis3/node:redis1", "node:sentinel3/node:redis1"
SPEAK_TO_DATA = {*CONFIGS, "flush", "failover"}
VARIANTS = [v for v in possible_variants(*HERE) if v[0] not in ELSEWHERE]
# A sentinel whose clock jumped trusts nothing for half a minute (TILT), so those come last.
VARIANTS.sort(key=lambda variant: variant[0] in CLOCKS)
ON_SENTINELS = [
    variant
    for variant in VARIANTS
    if not variant[0].startswith("worker") and variant[0] not in SPEAK_TO_DATA
]
BETWEEN = [v for v in VARIANTS if getattr(FAULTS.load(v[0]), "between_nodes", False)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorld]:
    folder = tmp_path_factory.mktemp("sentinel")
    with containers_world("redis-sentinel", folder, clocks=True) as here:
        yield here


@pytest.fixture(autouse=True)
def well(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "world" in request.fixturenames:
        put_right(request.getfixturevalue("world"))


def put_right(world: TestWorld) -> None:
    """Whatever a test left: links clean, servers up, all of them under one primary."""
    mend(world)
    for node in world.cluster.nodes.values():
        if isinstance(node, Skewable):
            with suppress(HarnessError):  # started without the shim
                node.set_clock(offset_ns=0, rate_ppm=0)
        if node.name in SERVERS:
            for setting, value in START.items():
                command(node, "CONFIG", "SET", setting, value)
    assert wait_until(lambda: is_whole(world.cluster), timeout_s=30), formed(world.cluster.nodes)


def is_whole(cluster: Cluster) -> bool:
    """An old primary that is back is told at once, where the sentinels take ten seconds."""
    lack = formed(cluster.nodes)
    if lack.startswith("primaries"):
        with suppress(HarnessError):
            primary = cluster.primary()
            for name in SERVERS:
                node = cluster.nodes[name]
                if name != primary and node.facts()["role"] == "primary":
                    command(node, "REPLICAOF", primary, str(SERVERS[primary]))
    return not lack


def command(node: Node, *words: str) -> str:
    assert isinstance(node, Commandable)
    return node.command(*words)


def aim(name: str, aims: dict[str, str], world: TestWorld) -> list[str]:
    acts_on = FAULTS.load(name).acts_on
    found = resolve(aims[acts_on], acts_on, world, random.Random(0))
    assert found
    return found


def shows_and_heals(
    world: TestWorld, name: str, params: dict[str, Any], targets: list[str]
) -> None:
    fault = make(name, params)
    reason = fault.can(world)
    if reason:
        pytest.skip(reason)
    if name in CLOCKS and build.why_not():
        pytest.skip(build.why_not() or "")
    with connected(world):
        fault.inject(world, targets)
        try:
            evidence = fault.evidence(world, targets)
        finally:
            fault.heal(world, targets)
        assert evidence.bit, evidence.says
        assert set(evidence.facts) == set(targets)
        healed = fault.healed(world, targets)
        assert healed.bit, healed.says


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_it_shows_and_heals_on_the_primary(
    world: TestWorld, name: str, params: dict[str, Any]
) -> None:
    shows_and_heals(world, name, params, aim(name, PRIMARY, world))


@pytest.mark.parametrize(("name", "params"), BETWEEN)
@pytest.mark.parametrize("link", [REPLICAS_LINK, SENTINELS_LINK])
def test_it_shows_and_heals_between_nodes(
    world: TestWorld, link: str, name: str, params: dict[str, Any]
) -> None:
    shows_and_heals(world, name, params, resolve(link, "link", world, random.Random(0)))


@pytest.mark.parametrize("name", [n for n in possible(LASTS, *HERE) if n not in ELSEWHERE])
def test_undone_by_another_process_it_is_healed(world: TestWorld, name: str) -> None:
    if name in CLOCKS and build.why_not():
        pytest.skip(build.why_not() or "")
    fault = make(name)
    targets = aim(name, PRIMARY, world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says


@pytest.mark.parametrize("name", ["node-restart", "node-restart-empty", "node-kill", "node-pause"])
def test_it_shows_and_heals_on_a_replica(world: TestWorld, name: str) -> None:
    replica = next(n for n in SERVERS if world.cluster.nodes[n].facts()["role"] == "replica")
    shows_and_heals(world, name, {}, [replica])


@pytest.mark.parametrize("name", sorted(SPEAK_TO_DATA))
def test_what_speaks_to_data_fails_on_a_sentinel(world: TestWorld, name: str) -> None:
    with pytest.raises(HarnessError):
        make(name).inject(world, ["sentinel2"])


@pytest.mark.parametrize("name", ["node-kill", "node-pause"])
def test_a_primary_that_is_gone_is_replaced(world: TestWorld, name: str) -> None:
    old = world.cluster.primary()
    term = world.cluster.nodes["sentinel1"].facts()["term"]
    fault = make(name)
    fault.inject(world, [old])

    def replaced() -> bool:
        with suppress(HarnessError):
            return world.cluster.primary() != old
        return False

    assert wait_until(replaced, timeout_s=20)
    # The sentinel that led the fail-over is believed first; the others hear of it.
    sentinel = world.cluster.nodes["sentinel1"]
    assert wait_until(lambda: sentinel.facts()["term"] > term, timeout_s=10)
    fault.heal(world, [old])
    assert fault.healed(world, [old]).bit
    assert world.cluster.primary() != old, "that it is back does not make it the primary again"


@pytest.mark.parametrize("old", ["killed", "lives"])
def test_a_commanded_failover_raises_the_term(world: TestWorld, old: str) -> None:
    primary = world.cluster.primary()
    fault = make("failover", {"old": old})
    fault.inject(world, [primary])
    evidence = fault.evidence(world, [primary])
    assert evidence.bit, evidence.says
    assert evidence.facts[primary]["promoted"] == world.cluster.primary() != primary
    fault.heal(world, [primary])
    assert fault.healed(world, [primary]).bit


@pytest.mark.parametrize(("name", "params"), ON_SENTINELS)
def test_it_shows_and_heals_on_a_sentinel(
    world: TestWorld, name: str, params: dict[str, Any]
) -> None:
    shows_and_heals(world, name, params, aim(name, SENTINEL, world))


def test_as_local_processes(tmp_path: Path) -> None:
    """Once: what differs between the runtimes is tested with one server."""
    need("redis-sentinel")
    with (
        cluster_up(tmp_path, "redis-sentinel", workers=2) as cluster,
        worker_processes(tmp_path, 2) as workers,
    ):
        world = TestWorld(cluster, workers, backend="redis-sentinel")
        for name in ("sever", "mute", "node-restart", "node-restart-empty", "failover"):
            assert make(name).can(world) is None
        shows_and_heals(world, "mute", {}, ["w1-sentinel2"])
        shows_and_heals(world, "node-restart", {}, ["sentinel2", "redis2"])
        shows_and_heals(world, "node-restart-empty", {}, ["redis3"])
        shows_and_heals(world, "failover", {"old": "lives"}, ["redis1"])
        assert wait_until(lambda: not formed(cluster.nodes), timeout_s=30)
        assert make("partition").can(world) is not None
