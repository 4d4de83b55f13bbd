"""Refusals without anybody who could have the lock."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.orphans import SLACK_NS, Orphans
from harness.core.result import Result, Valid
from tests.checkers.runs import MS, Run, context, fault

SLACK = SLACK_NS / MS


def check(run: Run, **fields: Any) -> Result:
    return Orphans().check(run.history(), context(**{"ttl_ms": 1000, **fields}))


def left(at: float, *, kind: str = "info") -> Run:
    """0's attempt has no known outcome; 1 asks for 50 ms from ``at`` on and is told busy."""
    run = Run().op(0, "acquire", 0, 100, kind=kind, error="timed out", hold="a")
    return run.op(1, "acquire", at, at + 50, kind="fail", error="busy", hold="b")


def test_what_may_be_left_for_a_lease_may_refuse_for_a_lease() -> None:
    assert check(left(1000)).valid is Valid.TRUE
    assert check(left(100 + 1000 + SLACK - 1)).valid is Valid.TRUE


def test_a_refusal_after_that_is_an_orphan() -> None:
    found = check(left(100 + 1000 + SLACK + 1))
    assert found.valid is Valid.FALSE
    assert found.anomalies[0].kind == "busy-though-free"
    assert found.anomalies[0].ops == [2, 3]


def test_a_lock_that_has_no_end_blocks_for_ever() -> None:
    assert check(left(90_000), lease_kind="none", ttl_ns=None).valid is Valid.TRUE


def test_a_session_lasts_as_long_as_the_bound_says() -> None:
    fields = {"lease_kind": "session", "recovery_ms_max": 3000}
    assert check(left(3000), **fields).valid is Valid.TRUE
    assert check(left(4000), **fields).valid is Valid.FALSE


def test_somebody_else_who_asks_is_an_excuse() -> None:
    run = left(5000).op(2, "acquire", 5040, 5060, kind="fail", error="busy", hold="c")
    assert check(run).valid is Valid.TRUE


def test_two_that_only_ask_excuse_each_other_for_a_moment() -> None:
    run = left(5000).op(2, "acquire", 5000, 6400, kind="fail", error="busy", hold="c")
    run.op(3, "acquire", 5100, 6300, kind="fail", error="busy", hold="d")
    found = check(run)
    assert found.valid is Valid.FALSE
    assert found.stats["violations"] == 2, "the long ones, not the one of 50 ms among them"
    paused = fault("worker-pause", "w3", 6000, 6200)
    assert check(run, faults=[paused]).stats["violations"] == 0, "a fault may keep one in front"


def test_a_fault_excuses_a_long_wait_until_a_moment_after_its_end() -> None:
    run = left(9000).op(2, "acquire", 5000, 8000, kind="fail", error="busy", hold="c")
    run.op(3, "acquire", 5100, 7900, kind="fail", error="busy", hold="d")
    early, late = fault("worker-pause", "w3", 5200, 5300), fault("worker-pause", "w3", 5200, 7500)
    assert check(run, faults=[early]).valid is Valid.FALSE
    assert check(run, faults=[late], ttl_ms=100).stats["violations"] == 1, "that at 9000"


def test_a_holder_is_an_excuse_until_its_release_is_answered() -> None:
    run = left(5000).op(2, "acquire", 4000, 4001, hold="c").op(2, "release", 4999, 5001, hold="c")
    assert check(run).valid is Valid.TRUE
    run = left(5000).op(2, "acquire", 4000, 4001, hold="c").op(2, "release", 4900, 4901, hold="c")
    assert check(run).valid is Valid.FALSE


def test_a_fault_keeps_things_alive() -> None:
    jam = fault("jam", "w0-redis", 50, 3000)
    assert check(left(3900), faults=[jam]).valid is Valid.TRUE
    assert check(left(4600), faults=[jam]).valid is Valid.FALSE
    later = fault("jam", "w0-redis", 1700, 3000)  # when everything was over
    assert check(left(3900), faults=[later]).valid is Valid.FALSE


@pytest.mark.parametrize("f", ["release", "renew"])
def test_a_hold_that_is_known_to_be_gone_is_no_excuse(f: str) -> None:
    run = Run().op(0, "acquire", 0, 1, hold="a")
    run.op(0, f, 10, 11, kind="fail", error="not-held", hold="a")
    run.op(2, "acquire", 12, 13, kind="info", error="cut", hold="c")
    run.op(1, "acquire", 5000, 5050, kind="fail", error="busy", hold="b")
    assert check(run).valid is Valid.FALSE


def test_clock_faults_make_it_silent() -> None:
    found = check(left(5000), faults=[fault("clock-jump", "redis", 10, 20)])
    assert found.valid is Valid.UNKNOWN
    assert found.stats["applies"] is False


def test_nothing_left_shows_nothing() -> None:
    run = Run().op(0, "acquire", 0, 2, hold="a").op(0, "release", 5, 6, hold="a")
    assert check(run).valid is Valid.UNKNOWN


def waits_for_a_permit(until: float) -> Run:
    """k = 2: both are out to 5000; 2 asks at 100, and nobody answers; ``until``: the last event."""
    run = Run().op(0, "acquire", 0, 1, hold="a").op(1, "acquire", 0, 1, hold="b")
    run.op(2, "acquire", 100, None, hold="c")
    run.op(0, "release", 4999, 5000, hold="a").op(1, "release", 4999, 5000, hold="b")
    return run.op(3, "acquire", until, until + 1, kind="fail", error="no connection", hold="d")


def test_who_died_while_it_waited_for_a_permit_shows_no_leak() -> None:
    fields = {"k": 2, "recovery_ms_max": 3000}
    run = waits_for_a_permit(9000)
    assert check(run, **fields).anomalies[0].kind == "permit-leaked"
    killed = fault("worker-kill", "w2", 300, 400)
    assert check(run, faults=[killed], **fields).stats["violations"] == 0


def test_a_fault_takes_its_time_from_a_wait_for_a_permit_and_no_more() -> None:
    fields = {"k": 2, "recovery_ms_max": 3000}
    early, late = (fault("jam", "w0-redis", at, at + 100) for at in (5500, 7500))
    run = waits_for_a_permit(9000)
    assert check(run, faults=[early], **fields).stats["violations"] == 1
    assert check(run, faults=[late], **fields).stats["violations"] == 0


@st.composite
def histories(draw: st.DrawFn) -> Run:
    run = Run()
    for number in range(draw(st.integers(1, 5))):
        call, ret = sorted(draw(st.lists(st.integers(0, 60), min_size=2, max_size=2)))
        kind = draw(st.sampled_from(["ok", "info", "busy"]))
        if kind == "busy":
            run.op(number, "acquire", call, ret, kind="fail", error="busy", hold=f"h{number}")
            continue
        run.op(number, "acquire", call, ret, kind=kind, hold=f"h{number}")
        if kind == "ok" and draw(st.booleans()):
            end = ret + draw(st.integers(0, 20))
            run.op(number, "release", end, end + 1, hold=f"h{number}")
    return run


@given(histories())
def test_as_brute_force_says(run: Run) -> None:
    """Per refusal: look at every millisecond between its call and its answer."""
    history = run.history()
    ops, lease = history.intervals(), 5 * MS
    lasting = []
    for op in ops:
        if op.invoke.f != "acquire":
            continue
        hold = op.field("hold")
        freed = [o.complete.time for o in ops
                 if o.invoke.f == "release" and o.field("hold") == hold and o.complete]  # fmt: skip
        done = op.complete.time if op.complete else 0
        end = done if op.outcome == "fail" else (freed or [done + lease + SLACK_NS])[0]
        lasting.append((hold, op.call_ns, end))
    alone = 0
    for op in ops:
        if op.outcome == "fail" and op.complete is not None:
            moments = range(op.call_ns, op.complete.time + 1, MS)
            alone += not any(
                start <= moment <= end
                for moment in moments
                for hold, start, end in lasting
                if hold != op.field("hold")
            )
    found = check(run, ttl_ms=5)
    assert found.stats["violations"] == alone
    assert (found.valid is Valid.FALSE) == bool(alone)


def test_the_cost_stays_near_linear() -> None:
    run = Run().op(9, "acquire", 0, 1, kind="info", hold="x")
    for number in range(20_000):
        at = 10 + number * 10
        run.op(number % 4, "acquire", at, at + 1, hold=f"h{number}")
        run.op(5, "acquire", at, at + 2, kind="fail", error="busy", hold=f"b{number}")
        run.op(number % 4, "release", at + 3, at + 4, hold=f"h{number}")
    assert check(run).valid is Valid.TRUE
