"""Checkers of runs against brute force that looks at every moment (tests/checkers/brute.py)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from checkers.availability import Availability
from checkers.belief import losses
from checkers.deadlock import Deadlock, cycles, holds_of, waits_of
from checkers.errors import Errors
from checkers.honesty import Honesty
from checkers.orphans import Orphans
from checkers.recovery import Recovery, takeovers
from checkers.view import View
from harness.core.protocols import CheckContext
from harness.core.result import Valid
from tests.checkers import brute
from tests.checkers.histories import no_deadline
from tests.checkers.small_runs import WORKERS, SmallRun, runs, tangles

TTL = 8  # units; None: locks that end with their connection
LEASES = st.sampled_from([TTL, None])
MS = 1_000_000
many = settings(no_deadline, max_examples=100)


def context(run: SmallRun, ttl: int | None, **fields: Any) -> CheckContext:
    known = {"workers": WORKERS, "faults": run.windows(), **fields}
    if ttl is None:
        return CheckContext(lease_kind="connection", **known)
    return CheckContext(ttl_ns=ttl * run.unit_ns, **known)


@many
@given(run=st.one_of(runs(keys=2, fault_kinds="worker-kill"), tangles()), ttl=LEASES)
def test_circles(run: SmallRun, ttl: int | None) -> None:
    view = View(run.history(), context(run, ttl))
    held = [hold for key, spans in view.locks.items() for hold in holds_of(key, spans, view)]
    found, several = cycles(held, waits_of(view))
    expected = brute.circles(run, ttl)
    event(f"circles: {len(expected)}")
    told = {
        frozenset(
            (wait.hold, hold.acquire.hold)
            for wait, hold in zip(cycle.waits, cycle.holds, strict=True)
        ): cycle
        for cycle in found
    }
    assert set(told) == set(expected)
    for edges, (first, _) in expected.items():
        assert told[edges].start == first * MS
    assert several == brute.waits_while_holding(run, ttl)
    verdict = Deadlock().check(run.history(), context(run, ttl)).valid
    assert (verdict is Valid.FALSE) == bool(expected)


@many
@given(run=runs(fault_kinds="worker-kill worker-pause worker-pause"), ttl=LEASES)
def test_losses(run: SmallRun, ttl: int | None) -> None:
    view = View(run.history(), context(run, ttl))
    asleep: dict[int, list[tuple[int, int]]] = {}
    for pause in view.pauses:
        assert isinstance(pause.process, int)
        asleep.setdefault(pause.process, []).append((pause.start // MS, pause.end // MS))
    found = {
        (loss.window.hold, loss.gone_ns // MS, loss.lag_ns // MS, loss.awake_ns // MS)
        for loss in losses(view)
    }
    expected = brute.losses(run, ttl, asleep)
    event(f"losses: {len(expected)}")
    assert found == expected


@many
@given(
    run=runs(fault_kinds="worker-kill worker-kill worker-pause node-kill"),
    ttl=LEASES,
    bound=st.integers(1, 8),
)
def test_takeovers(run: SmallRun, ttl: int | None, bound: int) -> None:
    known = context(run, ttl, recovery_ms_max=bound)
    expected = brute.takeovers(run, ttl, bound)
    event(f"hit: {len(expected)}, late: {sum(late for _, _, late in expected)}")
    view = View(run.history(), known)
    told = [
        (one.window.hold, None if one.took_ns is None else one.took_ns // MS)
        for one in takeovers(view)
    ]
    assert sorted(told, key=repr) == sorted(((hold, took) for hold, took, _ in expected), key=repr)
    result = Recovery().check(run.history(), known)
    assert (result.valid is Valid.FALSE) == any(late for _, _, late in expected)
    assert len(result.anomalies) == sum(late for _, _, late in expected)


def refusals_agree(run: SmallRun, kind: str, slack: int, patience: int) -> None:
    """Orphans finds just the refusals that the oracle finds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("checkers.orphans.SLACK_NS", slack * MS)
        patch.setattr("checkers.orphans.PATIENCE_NS", patience * MS)
        known = context(run, TTL, lease_kind=kind, recovery_ms_max=5)
        result = Orphans().check(run.history(), known)
    lasts = {"ttl": TTL, "session": 5, "none": None}[kind]
    expected = brute.alone(run, lasts, slack=slack, patience=patience, ttl=kind == "ttl")
    event(f"refused alone: {len(expected)}")
    assert result.stats["violations"] == len(expected)
    assert (result.valid is Valid.FALSE) == bool(expected)


@many
@given(
    run=runs(fault_kinds="node-kill worker-pause", answers="ok fail fail fail info"),
    kind=st.sampled_from(["ttl", "session", "none"]),
    slack=st.integers(0, 4),
    patience=st.integers(1, 8),
)
def test_refusals(run: SmallRun, kind: str, slack: int, patience: int) -> None:
    refusals_agree(run, kind, slack, patience)


@many
@given(
    run=runs(keys=2, answers="ok fail fail info", fault_kinds="worker-kill worker-pause"),
    pool=st.data(),
    bound=st.integers(1, 30),
)
def test_times_in_vain(run: SmallRun, pool: st.DataObject, bound: int) -> None:
    servers = ("a", "b", "c")
    for _ in range(pool.draw(st.integers(0, 4))):
        kind = pool.draw(st.sampled_from(["node-kill", "node-kill", "sever", "partition"]))
        server = pool.draw(st.sampled_from(servers))
        target = (
            f"w{pool.draw(st.integers(0, WORKERS - 1))}-{server}" if kind == "sever" else server
        )
        start = pool.draw(st.integers(0, 20))
        run.faults.append((kind, target, start, start + pool.draw(st.integers(1, 25))))
    known = context(run, TTL, servers=servers, grant_ms_max=bound)
    result = Availability().check(run.history(), known)
    longest = max(brute.longest_vain(run, servers, bound // 10).values(), default=0)
    event(f"longest: {longest}, late: {longest > bound}")
    assert (result.stats["longest_vain_ms"] or 0) == longest
    assert (result.valid is Valid.FALSE) == (longest > bound)


@many
@given(
    run=runs(fault_kinds="node-kill worker-pause worker-kill", answers="ok fail fail fail info"),
    kind=st.sampled_from(["ttl", "session", "none"]),
    slack=st.integers(0, 4),
    patience=st.integers(1, 8),
    pool=st.data(),
)
def test_refusals_of_readers_and_writers(
    run: SmallRun, kind: str, slack: int, patience: int, pool: st.DataObject
) -> None:
    for act in run.acts:
        if act.f == "acquire":
            act.mode = pool.draw(st.sampled_from(["read", "read", "write"]))
    refusals_agree(run, kind, slack, patience)


@many
@given(
    run=runs(
        fault_kinds="node-kill worker-pause worker-kill", answers="ok ok fail fail info info-open"
    ),
    kind=st.sampled_from(["ttl", "session", "none"]),
    slack=st.integers(0, 4),
    patience=st.integers(1, 6),
    bound=st.one_of(st.none(), st.integers(1, 8)),
    k=st.integers(2, 3),
)
def test_leaked_permits(
    run: SmallRun, kind: str, slack: int, patience: int, bound: int | None, k: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("checkers.orphans.SLACK_NS", slack * MS)
        patch.setattr("checkers.orphans.PATIENCE_NS", patience * MS)
        known = context(run, TTL, lease_kind=kind, recovery_ms_max=bound, k=k)
        result = Orphans().check(run.history(), known)
    lasts = {"ttl": TTL, "session": bound, "none": None}[kind]
    expected = brute.leaks(
        run, k, lasts, slack=slack, patience=patience, bound=bound, ttl=kind == "ttl"
    )
    event(f"leaked: {len(expected)}")
    found = {anomaly.ops[0] for anomaly in result.anomalies}
    assert len(found) == result.stats["violations"] == len(expected), (expected, result.says)
    assert (result.valid is Valid.FALSE) == bool(expected)


@many
@given(run=runs(ops=(6, 12), answers="ok ok ok ok ok ok fail info"))
def test_dishonest_answers(run: SmallRun) -> None:
    history = run.history()
    result = Honesty().check(history, context(run, TTL))
    expected = brute.dishonest(run)
    event(f"dishonest: {len(expected)}")
    assert result.stats.get("violations", 0) == len(expected)
    assert (result.valid is Valid.FALSE) == bool(expected)


@many
@given(run=runs(keys=2), pool=st.data())
def test_answers_from_nowhere(run: SmallRun, pool: st.DataObject) -> None:
    servers = pool.draw(st.sampled_from([("a",), ("a", "b")]))
    kinds = ["node-kill", "node-pause", "sever", "jam", "latency"]
    for _ in range(pool.draw(st.integers(0, 4))):
        kind, server = pool.draw(st.sampled_from(kinds)), pool.draw(st.sampled_from(servers))
        on_link = not kind.startswith("node")
        target = f"w{pool.draw(st.integers(0, WORKERS - 1))}-{server}" if on_link else server
        start = pool.draw(st.integers(0, 10))
        run.faults.append((kind, target, start, start + pool.draw(st.integers(0, 25))))
    result = Errors().check(run.history(), context(run, TTL, servers=servers))
    judged, wrong = brute.from_nowhere(run, servers)
    event(f"judged: {judged}, wrong: {wrong}")
    assert result.stats["judged"] == judged
    assert result.stats["violations"] == wrong
    assert (result.valid is Valid.FALSE) == bool(wrong)
