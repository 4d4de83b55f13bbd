"""The workloads shared and pool: what they ask for, who is who, what is refused or doubted."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.vacuity import Vacuity
from checkers.view import View
from harness.core.errors import RefusedError, UserError
from harness.core.messages import PoolEvent, Reply, Request
from harness.core.result import Valid
from harness.generator import EachWorker, SectionSpec
from harness.library_choice import settle_for
from harness.scenario import Scenario, parse
from harness.shared_pool import SharedPool
from harness.sharing import check_served, sharing_of, together_of
from harness.workloads.registry import WORKLOADS
from tests.checkers.runs import Run, context, fault

NS = 1_000_000
SPEC = SectionSpec(
    seed=3, keys=1, ttl_ms=300, timeout_ms=500, hold_ns=(NS, 9 * NS), idle_ns=(0, 5 * NS)
)
HELLO = {"library": "x", "users": ["threads", "fork"], "shares": ["connection", "object"]}


def scenario(kind: str, workers: int = 4, backend: str = "redis-single", **params: Any) -> Scenario:
    return parse({
        "name": "x", "claim": {"verdict": "holds"}, "backend": {"name": backend},
        "client": {"library": "recipe-redis"},
        "workload": {"kind": kind, "workers": workers, "keys": 2, "params": params},
    })  # fmt: skip


def test_a_worker_is_told_what_its_users_share() -> None:
    assert sharing_of(scenario("mutex")) is None
    assert together_of(scenario("mutex")) == 1
    told = sharing_of(scenario("shared", users="fork", share="connection"))
    assert told == {
        "users": "fork", "together": 2, "share": "connection", "keys": ["k0", "k1"], "ttl_ms": 1000
    }  # fmt: skip
    pool = sharing_of(scenario("pool", together=4, size=3, per="section"))
    assert pool is not None
    assert pool["pool"] == {"size": 3, "per": "section", "wait_ms": 500}
    assert (pool["users"], pool["share"]) == ("threads", "connection")


@pytest.mark.parametrize("kind", ["shared", "pool"])
def test_every_user_has_a_loop_of_its_own(kind: str) -> None:
    """The sections are those of mutex: what differs is who lives with whom."""
    for worker in range(4):
        made, plain = (
            EachWorker(
                tuple(
                    loaded.leaf(SPEC, loaded.settle({}), worker=w, until_ns=1000 * NS)
                    for w in range(4)
                )
            )
            for loaded in (WORKLOADS.load(kind)(), WORKLOADS.load("mutex")())
        )
        assert made.op(worker, 0)[0] == plain.op(worker, 0)[0]


@pytest.mark.parametrize("kind", ["shared", "pool"])
def test_processes_are_full(kind: str) -> None:
    with pytest.raises(UserError, match=r"use workload.workers = 6"):
        scenario(kind, workers=5, together=3)


class Processes:
    """The pool beneath: two processes, whose events are put in by hand."""

    handles = ("first", "second")

    def __init__(self) -> None:
        self.sent: list[tuple[int, Request]] = []
        self.events: list[PoolEvent] = []
        self.restarted: list[int] = []

    def send(self, process: int, request: Request) -> None:
        self.sent.append((process, request))

    def poll(self, deadline_ns: int) -> list[PoolEvent]:
        events, self.events = self.events, []
        return events

    def restart(self, process: int) -> None:
        self.restarted.append(process)


def test_workers_are_users_of_processes() -> None:
    beneath = Processes()
    pool = SharedPool(beneath, workers=6, together=3)  # type: ignore[arg-type]  # stands in for it
    assert [str(handle) for handle in pool.handles] == ["first"] * 3 + ["second"] * 3
    pool.send(4, Request(7, "acquire"))
    pool.send(1, Request(8, "release"))
    assert [(process, request.user) for process, request in beneath.sent] == [(1, 1), (0, 1)]
    beneath.events = [
        PoolEvent(0, 10, Reply(8, "ok")),
        PoolEvent(1, 11, Reply(7, "ok")),
        PoolEvent(1, 12, Reply(event="lost", hold="h", user=2)),
        PoolEvent(0, 13, Reply(event="hello")),
        PoolEvent(1, 14, died="signal SIGKILL"),
    ]
    got = [(event.worker, event.received_ns) for event in pool.poll(0)]
    assert got[:3] == [(1, 10), (4, 11), (5, 12)]
    assert got[3:] == [(0, 13), (1, 13), (2, 13), (3, 14), (4, 14), (5, 14)]
    pool.restart(5)
    assert beneath.restarted == [1]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"users": "tasks"}, "users is 'tasks', but the worker of 'x' serves users that are"),
        ({"kind": "pool"}, "what they share is 'pool'"),
    ],
)
def test_a_library_that_cannot_is_refused(params: dict[str, Any], says: str) -> None:
    asked = scenario(params.pop("kind", "shared"), **params)
    with pytest.raises(RefusedError, match=says):
        check_served(HELLO, sharing_of(asked) or {})


def test_a_worker_of_one_user_is_refused_and_one_that_can_is_not() -> None:
    told = sharing_of(scenario("shared")) or {}
    with pytest.raises(RefusedError, match="serves one user alone"):
        check_served({"library": "go-redsync"}, told)
    check_served(HELLO, told)


def test_the_simulator_is_refused() -> None:
    with pytest.raises(UserError, match="the simulator has none"):
        settle_for(scenario("shared"), "sim", progress=lambda _: None)


def meeting(first: int, second: int) -> Run:
    """Two workers of whom one waits for the other."""
    run = Run().op(first, "acquire", 0, 1, hold="a").op(second, "acquire", 0.5, 4, hold="b")
    return run.op(first, "release", 2, 3, hold="a").op(second, "release", 5, 6, hold="b")


def test_users_who_never_met_are_doubted() -> None:
    apart = Vacuity().check(meeting(0, 2).history(), context(workers=4, together=2))
    assert [one.kind for one in apart.anomalies] == ["no-contention-inside"]
    assert apart.valid is Valid.UNKNOWN
    together = Vacuity().check(meeting(2, 3).history(), context(workers=4, together=2))
    assert together.valid is Valid.TRUE
    alone = Vacuity().check(meeting(0, 2).history(), context(workers=4))
    assert alone.valid is Valid.TRUE


def test_a_fault_on_a_worker_hits_all_who_live_with_it() -> None:
    kill = fault("worker-kill", "w2", 2, 3)
    view = View(meeting(2, 3).history(), context(workers=4, together=2, faults=[kill]))
    assert view.processes("w2") == [2, 3]
    assert set(view.deaths) == {2, 3}
