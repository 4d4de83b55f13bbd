"""Every registered fault against real servers: it bites, it heals, and it cannot be faked.

Parametrised by the registry, so a new fault is tested by being registered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compose.process_runtime import ProcessCluster
from compose.toxiproxy import toxic_name
from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Commandable, Evidence, Fault, Sessional
from nemesis.registry import FAULTS
from tests.compose.local import cluster_up, need, undo_elsewhere
from tests.nemesis.conformance import (
    CONFIGS,
    LASTS,
    LINKS,
    WITH_TOXICS,
    assert_all_well,
    make,
    possible,
    possible_variants,
    put_right,
    settings_of,
    targets_of,
)
from tests.nemesis.worlds import TestWorld, connected, live_world, worker_processes

pytestmark = pytest.mark.live

HERE = ("process", "redis-single")
PLACES = [HERE]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestWorld, ProcessCluster]]:
    with live_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture
def both(
    shared: tuple[TestWorld, ProcessCluster],
) -> Iterator[tuple[TestWorld, ProcessCluster]]:
    """The world, as new: whatever a test left behind is put right without the faults' help."""
    world, cluster = shared
    with connected(world):
        yield replace(world), cluster
        put_right(world)


@pytest.fixture
def world(both: tuple[TestWorld, ProcessCluster]) -> TestWorld:
    return both[0]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it where a proof must not come from here on: then nobody waits long for it."""

    def hurry() -> None:
        monkeypatch.setattr(limits, "EVIDENCE_TIMEOUT_MS", 200)
        monkeypatch.setattr(limits, "HEAL_TIMEOUT_MS", 200)
        monkeypatch.setattr(limits, "PROBE_TIMEOUT_MS", 120)

    return hurry


@pytest.mark.parametrize(("name", "params"), possible_variants(*HERE))
def test_it_bites_and_heals(world: TestWorld, name: str, params: dict[str, Any]) -> None:
    fault = make(name, params)
    assert isinstance(fault, Fault)
    assert fault.kind == name
    assert fault.can(world) is None
    targets = targets_of(fault, world)
    json.dumps(list(fault.undo(world, targets)))
    fault.inject(world, targets)
    evidence = fault.evidence(world, targets)
    assert evidence.bit, evidence.says
    assert set(evidence.facts) == set(targets)
    assert msgspec.json.decode(msgspec.json.encode(evidence), type=Evidence) == evidence
    fault.heal(world, targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    assert_all_well(world)


@pytest.mark.parametrize("name", possible(FAULTS, *HERE))
def test_it_bites_all_targets_at_once(world: TestWorld, name: str) -> None:
    fault = make(name)
    targets = targets_of(fault, world, everyone=True)
    fault.inject(world, targets)
    evidence = fault.evidence(world, targets)
    assert evidence.bit, evidence.says
    fault.heal(world, targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    assert_all_well(world)


@pytest.mark.parametrize("name", possible(FAULTS, *HERE))
def test_a_fault_that_was_not_injected_has_no_evidence(
    world: TestWorld, name: str, impatient: Callable[[], None]
) -> None:
    fault = make(name)
    impatient()
    evidence = fault.evidence(world, targets_of(fault, world))
    assert not evidence.bit
    assert evidence.says


@pytest.mark.parametrize("name", possible(FAULTS, *HERE))
def test_no_target_is_no_evidence(world: TestWorld, name: str) -> None:
    fault = make(name)
    assert not fault.evidence(world, []).bit
    assert not fault.healed(world, []).bit


@pytest.mark.parametrize("name", possible(LASTS, *HERE))
def test_undone_by_another_process_it_is_healed_and_has_no_evidence(
    world: TestWorld, name: str, impatient: Callable[[], None]
) -> None:
    fault = make(name)
    targets = targets_of(fault, world)
    steps = fault.undo(world, targets)
    assert steps
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    impatient()
    assert not fault.evidence(world, targets).bit
    assert_all_well(world)
    undo_elsewhere(steps)  # again: nothing to do
    fault.heal(world, targets)  # nor for the fault itself
    assert_all_well(world)


@pytest.mark.parametrize("name", possible(LASTS, *HERE))
def test_a_fault_that_still_acts_is_not_healed(
    world: TestWorld, name: str, impatient: Callable[[], None]
) -> None:
    fault = make(name)
    targets = targets_of(fault, world)
    fault.inject(world, targets)
    assert fault.evidence(world, targets).bit
    impatient()
    assert not fault.healed(world, targets).bit
    fault.heal(world, targets)


@pytest.mark.parametrize("name", WITH_TOXICS)
def test_a_toxic_that_is_listed_but_does_nothing_is_no_evidence(
    both: tuple[TestWorld, ProcessCluster], name: str, impatient: Callable[[], None]
) -> None:
    """Listing is not biting: toxicity 0 leaves the toxic in the list and every byte alone."""
    world, cluster = both
    fault = make(name)
    targets = targets_of(fault, world)
    fault.inject(world, targets)
    assert cluster.api is not None
    proxy = f"{cluster._run}-{targets[0]}"
    for toxic in cluster.api.toxics(proxy):
        path = f"/proxies/{proxy}/toxics/{toxic['name']}"
        cluster.api._call("PATCH", path, {"toxicity": 0, "attributes": {}})
    assert world.cluster.links[0].toxics()
    impatient()
    assert not fault.evidence(world, targets).bit


def test_half_a_jam_is_no_jam_and_a_jam_is_no_mute(
    world: TestWorld, impatient: Callable[[], None]
) -> None:
    first, second = world.cluster.links
    jam, mute = make("jam"), make("mute")
    jam.inject(world, [first.name])
    mute.inject(world, [second.name])
    assert jam.evidence(world, [first.name]).bit
    assert mute.evidence(world, [second.name]).bit
    first.remove_toxic("latency", "downstream")
    second.add_toxic("latency", "downstream", {"latency": 3_600_000})
    impatient()
    assert not jam.evidence(world, [first.name]).bit
    assert not mute.evidence(world, [second.name]).bit


def test_a_dead_server_is_no_evidence_for_a_link_fault(
    world: TestWorld, impatient: Callable[[], None]
) -> None:
    """The echo is lost, but not because of the link."""
    impatient()
    for name in LINKS:
        fault = make(name)
        targets = targets_of(fault, world)
        fault.inject(world, targets)
        node = world.cluster.nodes["redis"]
        node.kill()
        assert not fault.evidence(world, targets).bit, name
        node.start()
        fault.heal(world, targets)


def test_one_target_spared_is_no_evidence(world: TestWorld, impatient: Callable[[], None]) -> None:
    fault = make("sever")
    impatient()
    targets = targets_of(fault, world, everyone=True)
    fault.inject(world, targets)
    world.cluster.links[1].set_enabled(True)
    evidence = fault.evidence(world, targets)
    assert not evidence.bit
    assert "w1-redis: link clean, echo answered" in evidence.says
    fault.heal(world, targets)


@pytest.mark.parametrize("name", LINKS)
def test_faults_on_one_link_may_not_overlap(world: TestWorld, name: str) -> None:
    link = world.cluster.links[0]
    link.add_toxic("slow_close", "upstream", {"delay": 1})
    fault = make(name)
    with pytest.raises(HarnessError, match=r"w0-redis is not clean \(slow_close upstream\)"):
        fault.inject(world, [link.name])
    assert [toxic["type"] for toxic in link.toxics()] == ["slow_close"]


@pytest.mark.parametrize("name", LINKS)
def test_a_refused_fault_neither_heals_nor_claims_what_another_did(
    world: TestWorld,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    impatient: Callable[[], None],
) -> None:
    first, second = make(name), make(name)
    targets = targets_of(first, world)
    first.inject(world, targets)
    with pytest.raises(HarnessError, match="is not clean"):
        second.inject(world, targets)
    second.heal(world, targets)
    impatient()
    assert not second.evidence(world, targets).bit  # the effect is there, but not by its doing
    monkeypatch.undo()
    evidence = first.evidence(world, targets)
    assert evidence.bit, evidence.says
    first.heal(world, targets)
    assert_all_well(world)


@pytest.mark.parametrize("name", ["worker-pause", "worker-kill", "node-pause", "node-kill"])
def test_what_does_not_run_is_no_target(world: TestWorld, name: str) -> None:
    fault = make(name)
    targets = targets_of(fault, world)
    (machine,) = [
        thing for thing in [*world.workers, *world.cluster.nodes.values()] if thing.name in targets
    ]
    machine.pause()
    while machine.status().state != "paused":
        pass
    with pytest.raises(HarnessError, match="is paused"):
        fault.inject(world, targets)
    fault.heal(world, targets)  # refused, so it is none of its business
    assert machine.status().state == "paused"
    machine.resume()


def test_a_stranger_is_named(world: TestWorld) -> None:
    for name in FAULTS:
        with pytest.raises(HarnessError, match=r"no (worker|node|link) named nobody; there are"):
            make(name).inject(world, ["nobody"])


@pytest.mark.parametrize("name", possible(FAULTS, *HERE))
def test_another_runtime_is_refused_with_the_reason(world: TestWorld, name: str) -> None:
    world.runtime = "moon"
    reason = make(name).can(world)
    assert reason is not None
    assert "'moon'" in reason


def test_a_killed_worker_is_another_process_after_the_heal(world: TestWorld) -> None:
    worker = world.workers[0]
    before = worker.status().identity
    fault = make("worker-kill")
    fault.inject(world, [worker.name])
    assert worker.status().state == "dead"
    fault.heal(world, [worker.name])
    assert fault.healed(world, [worker.name]).bit
    assert worker.status().identity != before


def test_a_killed_server_keeps_its_data_over_the_heal(
    both: tuple[TestWorld, ProcessCluster],
) -> None:
    world, cluster = both
    cluster._local["redis"].leave_mark("mine")
    fault = make("node-kill")
    fault.inject(world, ["redis"])
    fault.heal(world, ["redis"])
    assert fault.healed(world, ["redis"]).bit
    assert cluster._local["redis"].has_mark("mine")


def test_a_restart_with_data_is_refused_where_nothing_is_kept(tmp_path: Path) -> None:
    need()
    with cluster_up(tmp_path, persistence="none") as cluster:
        world = TestWorld(cluster, [])
        before = cluster.nodes["redis"].status()
        with pytest.raises(HarnessError, match=r"keeps nothing on disk.*node-restart-empty"):
            make("node-restart").inject(world, ["redis"])
        assert cluster.nodes["redis"].status() == before
        empty = make("node-restart-empty")
        empty.inject(world, ["redis"])
        assert empty.evidence(world, ["redis"]).bit


def test_a_restart_that_lost_its_data_is_not_one_with_its_data(
    both: tuple[TestWorld, ProcessCluster],
    monkeypatch: pytest.MonkeyPatch,
    impatient: Callable[[], None],
) -> None:
    world, cluster = both
    node, start = cluster._local["redis"], cluster._local["redis"].start
    monkeypatch.setattr(node, "start", lambda *, wipe: start(wipe=not wipe))
    for name, expected in (("node-restart", "mark is gone"), ("node-restart-empty", "there")):
        fault = make(name)
        fault.inject(world, ["redis"])
        impatient()
        evidence = fault.evidence(world, ["redis"])
        assert not evidence.bit
        assert expected in evidence.says


def test_names_of_toxics_are_as_the_undo_steps_promise(world: TestWorld) -> None:
    link = world.cluster.links[0]
    for name in WITH_TOXICS:
        fault = make(name)
        promised = {step["url"].rpartition("/")[2] for step in fault.undo(world, [link.name])}
        fault.inject(world, [link.name])
        listed = {toxic["name"] for toxic in link.toxics()}
        assert listed == {toxic_name(t["type"], t["stream"]) for t in link.toxics()}
        assert listed <= promised
        fault.heal(world, [link.name])


@pytest.mark.parametrize("name", CONFIGS)
def test_a_server_is_configured_as_before_after_the_heal(world: TestWorld, name: str) -> None:
    before = settings_of(world)
    fault = make(name)
    fault.inject(world, ["redis"])
    assert settings_of(world) != before
    fault.heal(world, ["redis"])
    assert settings_of(world) == before


@pytest.mark.parametrize("name", CONFIGS)
def test_a_server_started_again_is_left_alone_by_the_undo(world: TestWorld, name: str) -> None:
    """The steps name the start of the server that they were promised for."""
    node = world.cluster.nodes["redis"]
    steps = make(name).undo(world, ["redis"])
    node.kill()
    node.start()
    fault = make(name)
    fault.inject(world, ["redis"])
    assert "another server is there, left alone" in undo_elsewhere(steps)
    assert fault.evidence(world, ["redis"]).bit
    fault.heal(world, ["redis"])


def test_the_lock_is_what_a_full_cache_throws_away(world: TestWorld) -> None:
    """volatile-ttl: the key that expires soonest goes, and with it the lock."""
    node = world.cluster.nodes["redis"]
    assert isinstance(node, Commandable)
    node.command("SET", "lock", "me", "NX", "PX", "30000")
    fault = make("memory-pressure", {"policy": "volatile-ttl"})
    fault.inject(world, ["redis"])
    assert fault.evidence(world, ["redis"]).bit
    assert node.command("EXISTS", "lock") == "0"
    fault.heal(world, ["redis"])


def test_a_client_without_a_named_connection_cannot_be_found(tmp_path: Path) -> None:
    unknown = pytest.raises(HarnessError, match=r"redis knows no connection of w0; it has none")
    with live_world(tmp_path) as (world, _), unknown:
        make("backend-kill").inject(world, ["w0-redis"])


def test_only_the_connections_of_the_target_are_ended(world: TestWorld) -> None:
    first, second = world.cluster.links
    node = world.cluster.nodes["redis"]
    assert isinstance(node, Sessional)
    spared = node.sessions(second)
    fault = make("backend-kill")
    fault.inject(world, [first.name])
    assert fault.evidence(world, [first.name]).bit
    assert node.sessions(first) == []
    assert node.sessions(second) == spared != []


def test_a_stopped_worker_goes_on_where_it_was(tmp_path: Path) -> None:
    need()
    with cluster_up(tmp_path) as cluster, worker_processes(tmp_path, 1) as workers:
        world = TestWorld(cluster, workers)
        before = workers[0].status()
        fault = make("worker-pause")
        fault.inject(world, ["w0"])
        assert fault.evidence(world, ["w0"]).bit
        fault.heal(world, ["w0"])
        assert fault.healed(world, ["w0"]).bit
        assert workers[0].status() == before
