"""How long holders believed in lost locks, and who answered ok to somebody else's release."""

from __future__ import annotations

import time
from itertools import pairwise, permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.belief import Belief
from checkers.honesty import Honesty
from harness.core.history import History
from harness.core.protocols import CheckContext
from harness.core.result import Result, Valid
from tests.checkers.runs import Run, context, fault


def belief(run: Run, **fields: Any) -> Result:
    return Belief().check(run.history(), context(**fields))


def honesty(run: Run) -> Result:
    return Honesty().check(run.history(), context(ttl_ms=1000))


def paused_holder() -> Run:
    """0 sleeps past its lease, 1 gets the lock, 0 wakes up and is refused."""
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 50, 1010, hold="b")
    run.op(1, "release", 1500, 1502, hold="b")
    run.op(0, "release", 2000, 2002, kind="fail", error="not-held", hold="a")
    return run


def test_the_lag_runs_from_the_first_proof_to_the_end_of_the_belief() -> None:
    found = belief(paused_holder(), ttl_ms=1000)
    assert found.valid is Valid.UNKNOWN
    assert found.stats["applies"] is False, "without a bound nothing is judged"
    assert found.stats["losses"] == 1
    assert found.stats["lag_ms_max"] == 2000 - 1002
    assert found.stats["told_by"] == {"released": 1}
    assert found.stats["unaware"] == 1


def test_time_asleep_is_no_lag_of_the_library() -> None:
    pause = fault("worker-pause", "w0", 3, 1900)
    found = belief(paused_holder(), ttl_ms=1000, faults=[pause], belief_lag_ms_max=200)
    assert found.stats["lag_ms_max"] == 998
    assert found.stats["awake_lag_ms_max"] == 0, "it did nothing between 3 and 2000"
    assert found.valid is Valid.TRUE


def test_two_pauses_that_overlap_are_slept_once() -> None:
    """Neither of the faults was over before the process did anything again."""
    pauses = [
        fault("worker-pause", "w0", 1100, 1200),
        fault("worker-pause", "w0", 1300, 1400, id=2),
    ]
    found = belief(paused_holder(), ttl_ms=1000, faults=pauses, belief_lag_ms_max=50)
    assert found.stats["lag_ms_max"] == 998
    assert found.stats["awake_lag_ms_max"] == 98, "from 1002, when it was gone, to 1100"
    assert found.valid is Valid.FALSE


def test_a_holder_acts_before_its_waking_is_seen() -> None:
    """Between SIGCONT and the harness' look at it the worker writes and releases already."""
    pause = fault("worker-pause", "w0", 1, 2100)
    found = belief(paused_holder(), ttl_ms=1000, faults=[pause])
    assert found.stats["awake_lag_ms_max"] == 0


def test_a_bound_that_is_passed_is_a_violation_with_its_operations() -> None:
    found = belief(paused_holder(), ttl_ms=1000, belief_lag_ms_max=500)
    assert found.valid is Valid.FALSE
    (anomaly,) = found.anomalies
    assert anomaly.kind == "late-to-know"
    assert len(anomaly.ops) >= 2


def test_a_signal_ends_the_belief() -> None:
    run = paused_holder().event(0, "lost", 1100, hold="a")
    found = belief(run, ttl_ms=1000, belief_lag_ms_max=500)
    assert found.valid is Valid.TRUE
    assert found.stats["told_by"] == {"lost signal": 1}
    assert found.stats["lag_ms_max"] == 98


def test_somebody_elses_grant_counts_where_no_lease_ends() -> None:
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 100, 110, hold="b")
    run.op(0, "release", 300, 302, hold="a")
    found = belief(run, lease_kind="connection")
    assert found.stats["lag_ms_max"] == 190


def test_an_older_grant_with_a_late_answer_is_no_proof() -> None:
    run = Run()
    run.op(1, "acquire", 0, 50, hold="b")  # perhaps granted and over before the next
    run.op(0, "acquire", 10, 20, hold="a")
    run.op(0, "release", 60, 62, hold="a")
    assert belief(run, lease_kind="connection").stats["losses"] == 0


def test_nothing_lost_is_never_called_valid() -> None:
    run = Run().op(0, "acquire", 0, 2, hold="a").op(0, "release", 5, 6, hold="a")
    assert belief(run, ttl_ms=1000, belief_lag_ms_max=5).valid is Valid.UNKNOWN


def test_a_release_during_anothers_sure_hold_is_dishonest() -> None:
    run = paused_holder().op(0, "renew", 1200, 1202, hold="a")
    found = honesty(run)
    assert found.valid is Valid.FALSE
    assert found.anomalies[0].kind == "answered-ok-without-lock"
    assert "process 0" in found.anomalies[0].says
    assert "process 1's" in found.anomalies[0].says


def test_a_hold_is_released_once() -> None:
    run = Run().op(0, "acquire", 0, 2, hold="a").op(0, "release", 5, 6, hold="a")
    assert honesty(run).valid is Valid.TRUE
    run.op(0, "release", 8, 9, hold="a")
    assert honesty(run).anomalies[0].kind == "answered-ok-twice"


def test_the_release_that_was_answered_first_counts() -> None:
    """Two processes release one hold; the one that began first took long."""
    run = Run().op(0, "acquire", 0, 2, hold="a").op(0, "release", 5, 100, hold="a")
    run.op(1, "release", 10, 20, hold="a").op(1, "renew", 30, 31, hold="a")
    found = honesty(run)
    assert [anomaly.kind for anomaly in found.anomalies] == ["answered-ok-twice"]


def test_a_hold_that_a_restart_ended_accuses_nobody() -> None:
    """1's lease was lost with the server; 2 was granted anew and releases rightly."""
    run = Run()
    run.op(1, "acquire", 0, 2, hold="b")
    run.op(2, "acquire", 20, 22, hold="c")
    run.op(2, "release", 40, 42, hold="c")
    run.op(1, "release", 60, 62, kind="fail", error="not-held", hold="b")
    assert honesty(run).valid is Valid.TRUE


def test_two_owners_after_a_flush_contradict_each_other() -> None:
    """The keys were deleted at 10: 1 is granted, too, and both renew leases that still are there.

    1's lock is real, and yet who reads the history alone cannot know; both are named, and with
    each the other's answer that speaks against it.
    """
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 1, 12, hold="b")
    run.op(0, "renew", 20, 21, hold="a")
    run.op(1, "renew", 30, 31, hold="b")
    run.op(0, "renew", 40, 41, hold="a")
    run.op(1, "release", 50, 51, hold="b")
    run.op(0, "release", 60, 61, kind="fail", error="not-held", hold="a")
    found = honesty(run)
    assert [(anomaly.says.partition(" (")[0], anomaly.legal_if) for anomaly in found.anomalies] == [
        (
            f"key 'k0': the renew of process {who}",
            f"one of the two had been refused: it, or {other}",
        )
        for who, other in [
            (1, "the renew of process 0 at 40 ms"),
            (0, "the release of process 1 at 50 ms"),
            (0, "the release of process 1 at 50 ms"),
        ]
    ]


def test_a_release_whose_key_was_gone_is_answered_ok() -> None:
    """Deleted at 10; 0's release found no node and was called done, while 1 had the lock."""
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 1, 12, hold="b")
    run.op(0, "release", 20, 21, hold="a")
    run.op(1, "release", 50, 51, hold="b")
    (anomaly,) = honesty(run).anomalies
    assert anomaly.kind == "answered-ok-without-lock"
    assert "the release of process 0 (20 ms to 21 ms)" in anomaly.says


def test_who_is_refused_after_a_flush_is_told_the_truth() -> None:
    """The same where the owner is compared: the one refusal is the history's only answer to 0."""
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 1, 12, hold="b")
    run.op(0, "renew", 20, 21, kind="fail", error="not-held", hold="a")
    run.op(1, "release", 50, 51, hold="b")
    assert honesty(run).valid is Valid.TRUE


def test_refusals_alone_show_nothing() -> None:
    run = Run().op(0, "release", 5, 6, kind="fail", error="not-held", hold="a")
    assert honesty(run).valid is Valid.UNKNOWN


@st.composite
def histories(draw: st.DrawFn) -> Run:
    """Up to five holds of one lock with answers at will, each of a process of its own."""
    run = Run()
    for number in range(draw(st.integers(1, 5))):
        times = sorted(draw(st.lists(st.integers(0, 30), min_size=6, max_size=6)))
        run.op(number, "acquire", times[0], times[1], hold=f"h{number}")
        f = draw(st.sampled_from(["renew", "release"]))
        ok = draw(st.booleans())
        error = None if ok else "not-held"
        run.op(number, f, times[2], times[3], kind="ok" if ok else "fail", error=error,
               hold=f"h{number}")  # fmt: skip
        if f == "renew" and draw(st.booleans()):
            run.op(number, "release", times[4], times[5], hold=f"h{number}")
    return run


def owners_exist(history: History) -> bool:
    """Brute force: is there one owner for each half unit of time that all ok answers allow?

    Each hold owns one connected piece of time that meets all its ok operations.  Pieces of two
    holds must be disjoint.  Tries every order of the holds; pieces are placed as early as possible.
    """
    holds: dict[str, list[tuple[int, int]]] = {}
    for op in history.intervals():
        if op.outcome == "ok":
            holds.setdefault(op.field("hold"), []).append((op.call_ns, op.return_ns or 0))
    for order in permutations(holds.values()):
        free_from, fits = -1, True
        for ops in order:
            # It owns from the acquire on and meets each later operation at its earliest point.
            begin = max(free_from, ops[0][0])
            if begin > ops[0][1]:
                fits = False
                break
            end = begin
            for call, ret in ops[1:]:
                end = max(end, call)
                if end > ret:
                    fits = False
            free_from = end
        if fits:
            return True
    return False


@given(histories())
def test_whoever_is_called_dishonest_has_no_excuse(run: Run) -> None:
    """Sound: where a world with one owner at a time explains all ok answers, nobody is accused."""
    history = run.history()
    if owners_exist(history):
        found = Honesty().check(history, CheckContext(ttl_ns=None, workers=5))
        assert found.valid is not Valid.FALSE, found.says


def test_the_oracle_of_this_file_can_say_both() -> None:
    good = Run().op(0, "acquire", 0, 1, hold="a").op(0, "release", 2, 3, hold="a")
    assert owners_exist(good.op(1, "acquire", 0, 4, hold="b").history())
    assert not owners_exist(paused_holder().op(0, "renew", 1200, 1202, hold="a").history())


@pytest.mark.parametrize(("f", "late"), list(product(["renew", "release"], [True, False])))
def test_each_kind_of_answer_is_judged(f: str, late: bool) -> None:
    run = Run()
    run.op(0, "acquire", 0, 1, hold="a")
    run.op(1, "acquire", 10, 11, hold="b")
    run.op(0, f, 20, 21 if late else None, hold="a")
    run.op(1, "release", 30, 31, hold="b")
    assert honesty(run).valid is (Valid.FALSE if late else Valid.TRUE)


def test_the_cost_stays_near_linear() -> None:
    """Ten times the operations take nowhere near a hundred times the steps."""
    spent = []
    for size in (1_000, 10_000):
        run = Run()
        for number in range(size):
            at = number * 10
            run.op(number % 4, "acquire", at, at + 1, hold=f"h{number}")
            run.op(number % 4, "release", at + 2, at + 3, hold=f"h{number}")
        history = run.history()
        begin = time.process_time()
        Belief().check(history, context(ttl_ms=5))
        Honesty().check(history, context(ttl_ms=5))
        spent.append(time.process_time() - begin)
    small, large = next(pairwise(spent))
    assert large < 40 * max(small, 0.01)
