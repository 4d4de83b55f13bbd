"""Whom a target spec means, without any server."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import pytest

from compose.registry import BACKENDS
from harness.core.clock import VirtualClock
from harness.core.errors import HarnessError
from harness.core.protocols import Cluster, Status, WorkerHandle
from nemesis.targets import between_nodes, resolve, target_problem
from tests.nemesis.worlds import FixedView, TestWorld


@dataclass
class Worker:
    index: int
    state: Literal["running", "paused", "dead"] = "running"

    @property
    def name(self) -> str:
        return f"w{self.index}"

    def status(self) -> Status:
        return Status(self.state, self.name)


@dataclass
class Way:
    src: str
    dst: str

    @property
    def name(self) -> str:
        return f"{self.src}-{self.dst}"


@dataclass
class Nodes:
    names: Sequence[str]
    leader: str | None
    links: list[Way] = field(default_factory=list)

    @property
    def nodes(self) -> Mapping[str, Any]:
        return dict.fromkeys(self.names)

    def primary(self) -> str:
        if self.leader is None:
            raise HarnessError("nobody answers")
        return self.leader


def world(
    workers: int = 3,
    nodes: Sequence[str] = ("a", "b"),
    *,
    leader: str | None = "b",
    holders: Sequence[int] = (),
    waiters: Sequence[int] = (),
    dead: Sequence[int] = (),
    peers: bool = False,
) -> TestWorld:
    people = [Worker(i, "dead" if i in dead else "running") for i in range(workers)]
    ways = [Way(worker.name, node) for worker in people for node in nodes]
    if peers:
        ways += [Way(a, b) for a in nodes for b in nodes if a != b]
    return TestWorld(
        cluster=cast(Cluster, Nodes(nodes, leader, ways)),
        workers=cast(Sequence[WorkerHandle], people),
        clock=VirtualClock(),
        view=FixedView(list(holders), list(waiters)),
    )


def ask(spec: str, acts_on: str, where: TestWorld, seed: int = 0) -> list[str]:
    return resolve(spec, acts_on, where, random.Random(seed))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("holder", ["w2"]),
        ("waiter", ["w0"]),
        ("worker:1", ["w1"]),
        ("worker:9", []),
        ("all-workers", ["w0", "w1", "w2"]),
    ],
)
def test_worker_aims(spec: str, expected: list[str]) -> None:
    assert ask(spec, "worker", world(holders=[2, 1], waiters=[0, 1])) == expected


def test_nobody_holds_or_waits_now() -> None:
    assert ask("holder", "worker", world()) == []
    assert ask("waiter", "worker", world()) == []
    assert ask("holder", "link", world()) == []


def test_the_dead_are_no_targets() -> None:
    here = world(holders=[2, 1], dead=[2])
    assert ask("holder", "worker", here) == ["w1"]
    assert ask("worker:2", "worker", here) == []
    assert ask("all-workers", "worker", here) == ["w0", "w1"]
    assert {ask("any-worker", "worker", here, seed)[0] for seed in range(40)} == {"w0", "w1"}
    assert ask("any-worker", "worker", world(2, dead=[0, 1])) == []


def test_a_holder_that_the_world_does_not_know_is_passed_over() -> None:
    assert ask("holder", "worker", world(holders=[7, 1])) == ["w1"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [("primary", ["b"]), ("all-nodes", ["a", "b"]), ("node:a", ["a"]), ("node:z", [])],
)
def test_node_aims(spec: str, expected: list[str]) -> None:
    assert ask(spec, "node", world()) == expected


def test_the_granter_is_where_the_holder_got_its_lock() -> None:
    here = world(holders=[1])
    assert ask("granter", "node", here) == []
    here.view = FixedView([1], [], ["b", "gone"])
    assert ask("granter", "node", here) == ["b"]
    assert ask("holder/granter", "link", here) == ["w1-b"]


def test_no_primary_now_is_no_target() -> None:
    assert ask("primary", "node", world(leader=None)) == []
    assert ask("primary", "link", world(leader=None)) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("holder", ["w1-a", "w1-b"]),
        ("primary", ["w0-b", "w1-b", "w2-b"]),
        ("holder/primary", ["w1-b"]),
        ("worker:2/node:a", ["w2-a"]),
        ("all-workers/node:a", ["w0-a", "w1-a", "w2-a"]),
        ("waiter/primary", []),
        ("all-nodes", ["w0-a", "w0-b", "w1-a", "w1-b", "w2-a", "w2-b"]),
    ],
)
def test_link_aims(spec: str, expected: list[str]) -> None:
    assert ask(spec, "link", world(holders=[1])) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("primary/all-nodes", ["b-a", "b-c"]),
        ("all-nodes/primary", ["a-b", "c-b"]),
        ("node:a/node:c", ["a-c"]),
        ("node:a+node:c/primary", ["a-b", "c-b"]),
    ],
)
def test_aims_at_links_between_nodes(spec: str, expected: list[str]) -> None:
    here = world(1, ("a", "b", "c"), peers=True)
    assert between_nodes(spec)
    assert ask(spec, "link", here) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("primary", ["w0-b"]),
        ("all-nodes", ["w0-a", "w0-b", "w0-c"]),
        ("all-workers", ["w0-a", "w0-b", "w0-c"]),
        ("node:a+primary", ["w0-a", "w0-b"]),
        ("all-workers/node:a+node:c", ["w0-a", "w0-c"]),
    ],
)
def test_other_aims_at_links_leave_those_between_nodes_alone(
    spec: str, expected: list[str]
) -> None:
    assert not between_nodes(spec)
    assert ask(spec, "link", world(1, ("a", "b", "c"), peers=True)) == expected


def test_joined_aims_name_each_node_once_in_the_order_of_the_cluster() -> None:
    assert ask("node:c+primary+node:b", "node", world(1, ("a", "b", "c"))) == ["b", "c"]
    assert target_problem("node", "primary+nde:a")
    assert target_problem("node", "primary+node:")


def test_chance_comes_from_the_stream_alone() -> None:
    where = world(3)
    first = [ask("any-worker", "worker", where, seed) for seed in range(20)]
    assert first == [ask("any-worker", "worker", where, seed) for seed in range(20)]
    assert {names[0] for names in first} == {"w0", "w1", "w2"}
    assert {ask("any-node", "node", where, seed)[0] for seed in range(20)} == {"a", "b"}
    links = {tuple(ask("any-worker/any-node", "link", where, seed)) for seed in range(60)}
    assert len(links) == 6
    assert all(len(names) == 1 for names in links)


@pytest.mark.parametrize(
    ("count", "minority", "majority"), [(1, 0, 1), (2, 0, 2), (3, 1, 2), (4, 1, 3), (5, 2, 3)]
)
def test_a_minority_and_a_majority_of_the_nodes(count: int, minority: int, majority: int) -> None:
    where = world(nodes="abcde"[:count])
    for spec, size in (("minority", minority), ("majority", majority)):
        drawn = {tuple(ask(spec, "node", where, seed)) for seed in range(60)}
        assert {len(names) for names in drawn} == {size}
        assert all(list(names) == sorted(set(names)) for names in drawn)
        assert {name for names in drawn for name in names} == set("abcde"[:count] if size else "")
    assert len(ask("holder/minority", "link", world(nodes="abcde", holders=[1]))) == 2


@dataclass
class Voter:
    votes: bool


def test_only_those_whose_majority_decides_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    voters = {name: Voter(name in "def") for name in "abcdef"}
    monkeypatch.setattr(Nodes, "nodes", property(lambda nodes: voters))
    where = world(nodes="abcdef")
    assert {name for seed in range(40) for name in ask("minority", "node", where, seed)} == set(
        "def"
    )
    assert all(len(ask("majority", "node", where, seed)) == 2 for seed in range(40))
    assert set(ask("any-node", "node", where, 3)) < set("abcdef")
    assert ask("all-nodes", "node", where, 0) == list("abcdef")


def test_with_sentinel_the_sentinels_decide_and_behind_a_pooler_the_server() -> None:
    voters = {name: BACKENDS.load(name).voters for name in BACKENDS}
    assert voters["redis-sentinel"] == ("sentinel1", "sentinel2", "sentinel3")
    assert voters["postgres-pgbouncer"] == ("postgres",)
    others = set(BACKENDS) - {"redis-sentinel", "postgres-pgbouncer"}
    assert all(voters[name] == BACKENDS.load(name).node_names for name in others)


@pytest.mark.parametrize(
    ("acts_on", "spec", "says"),
    [
        ("worker", "primary", "does not suit a fault that acts on a worker"),
        ("node", "holder", "does not suit a fault that acts on a node"),
        ("worker", "holdr", "unknown target 'holdr'; use one of: holder, waiter"),
        ("worker", "worker:x", "write worker:N"),
        ("worker", "worker:64", "N from 0 to 63"),
        ("worker", "worker:-1", "write worker:N"),
        ("worker", "worker:²", "write worker:N"),
        ("node", "node:", "write node:NAME"),
        ("link", "holder/holder", "unknown node aim 'holder'"),
        ("link", "primary/holder", "unknown node aim 'holder'"),
        ("link", "holder/", "unknown node aim ''"),
        ("worker", "holder/primary", "unknown target 'holder/primary'"),
        ("node", "", "unknown target ''"),
    ],
)
def test_a_wrong_spec_is_named_with_the_fix(acts_on: str, spec: str, says: str) -> None:
    problem = target_problem(acts_on, spec)
    assert problem is not None
    assert says in problem
    with pytest.raises(ValueError, match=r"use one of|names no"):
        ask(spec, acts_on, world())


@pytest.mark.parametrize(
    ("acts_on", "spec"),
    [
        ("worker", "worker:63"),
        ("node", "node:redis-1"),
        ("link", "node:redis"),
        ("link", "worker:0/all-nodes"),
    ],
)
def test_a_right_spec_has_no_problem(acts_on: str, spec: str) -> None:
    assert target_problem(acts_on, spec) is None
