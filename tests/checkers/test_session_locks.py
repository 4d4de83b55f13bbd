"""Locks that end with their session: nobody asked for the end, and it may come at any time."""

from __future__ import annotations

import pytest

from checkers.exclusion import Exclusion
from checkers.fairness import Fairness
from checkers.lease import Lease
from checkers.view import View, unasked_ends
from harness.core.result import Side, Valid
from tests.checkers.runs import Run, context, fault

BOUND = ("session", "connection")


def lost_in_silence() -> Run:
    """w0's session ends at 5, w1 gets the lock at 6, w0 hears of it when it unlocks at 9."""
    run = Run().op(0, "acquire", 0, 1, hold="a").op(1, "acquire", 2, 6, hold="b")
    run.op(0, "release", 9, 10, hold="a", kind="info", error="session terminated")
    return run.op(1, "release", 12, 13, hold="b")


@pytest.mark.parametrize("kind", BOUND)
def test_an_end_that_nobody_asked_for_is_no_fault_of_the_service(kind: str) -> None:
    history, known = lost_in_silence().history(), context(lease_kind=kind)
    assert Lease().check(history, known).valid is Valid.TRUE
    believed = Exclusion().check(history, known)
    assert believed.valid is Valid.FALSE
    assert [a.side for a in believed.anomalies] == [Side.CLIENT]


def test_a_lock_without_any_end_of_its_own_may_not_do_that() -> None:
    history = lost_in_silence().history()
    assert Lease().check(history, context(lease_kind="none")).valid is Valid.FALSE


def test_a_header_that_names_a_ttl_changes_nothing() -> None:
    history = lost_in_silence().history(ttl_ns=1_000_000_000)
    view = View(history, context(lease_kind="connection"))
    assert not view.leased
    assert view.ttl_ns is None
    assert Lease().check(history, context(lease_kind="connection")).valid is Valid.TRUE


def test_an_unlock_that_was_confirmed_proves_the_hold_until_then() -> None:
    run = Run().op(0, "acquire", 0, 1, hold="a").op(1, "acquire", 2, 6, hold="b")
    run.op(0, "release", 9, 10, hold="a").op(1, "release", 12, 13, hold="b")
    result = Lease().check(run.history(), context(lease_kind="connection"))
    assert result.valid is Valid.FALSE
    assert [(a.kind, a.side) for a in result.anomalies] == [("double-grant", Side.SERVICE)]


def test_not_held_is_a_right_answer_for_a_library_that_connected_again() -> None:
    run = Run().op(0, "acquire", 0, 1, hold="a")
    run.op(0, "release", 9, 10, hold="a", kind="fail", error="not-held")
    assert Lease().check(run.history(), context(lease_kind="connection")).valid is Valid.TRUE
    for_good = Lease().check(run.history(), context(lease_kind="none"))
    assert [a.kind for a in for_good.anomalies] == ["lost-lock"]


def test_a_dead_worker_leaves_no_hold_behind() -> None:
    run = Run().op(0, "acquire", 0, 1, hold="a").op(1, "acquire", 2, 6, hold="b")
    run.op(1, "release", 8, 9, hold="b").op(2, "acquire", 2, 8.5, hold="c")
    killed = fault("worker-kill", "w0", 4, 5)
    known = context(lease_kind="connection", faults=[killed])
    assert Lease().check(run.history(), known).valid is Valid.TRUE
    assert Exclusion().check(run.history(), known).valid is Valid.TRUE
    assert Fairness().check(run.history(), known).stats["permits_leaked"] == 0
    assert Lease().check(run.history(), context(lease_kind="none")).valid is Valid.FALSE


def test_tokens_are_judged_as_everywhere() -> None:
    run = Run().op(0, "acquire", 0, 1, hold="a", token=7).op(1, "acquire", 2, 6, hold="b", token=7)
    result = Lease().check(run.history(), context(lease_kind="connection"))
    assert [a.kind for a in result.anomalies] == ["token-duplicate"]


def test_which_ends_are_added() -> None:
    run = Run().op(0, "acquire", 0, 1, hold="held").op(0, "renew", 3, 4, hold="held")
    run.op(1, "acquire", 0, 2, hold="busy", kind="fail", error="busy")
    run.op(2, "acquire", 5, 6, hold="done").op(2, "release", 7, 8, hold="done")
    run.op(3, "acquire", 9, None, hold="unknown")
    ends = unasked_ends(run.history().intervals())
    assert [(end.field("hold"), end.call_ns // 1_000_000) for end in ends] == [
        ("held", 3),
        ("unknown", 9),
    ]
    assert {(end.invoke.f, end.outcome) for end in ends} == {("release", "info")}
