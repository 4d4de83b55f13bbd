"""lease, exclusion, fencing and effects on small runs."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.effects import Effects
from checkers.exclusion import Exclusion
from checkers.fencing import Fencing
from checkers.lease import Lease
from harness.core.history import History
from harness.core.result import Side, Valid
from tests.checkers.runs import MS, Run, context, fault, holder_pause, record

PAUSE = fault("worker-pause", "w0", 3, 20)


def test_paused_holder_breaks_the_client_not_the_service() -> None:
    run, log = holder_pause(accepted=True)
    history = run.history()
    known = context(ttl_ms=10, faults=[PAUSE], resource=log, resource_mode="unfenced")
    lease = Lease().check(history, known)
    assert lease.valid is Valid.TRUE, lease.says
    assert lease.stats["exact"] is True
    exclusion = Exclusion().check(history, known)
    assert exclusion.valid is Valid.FALSE
    (anomaly,) = exclusion.anomalies
    assert anomaly.side is Side.CLIENT
    assert anomaly.overlap_ns == 10 * MS  # beliefs [2, 22] and [12, 24]
    assert exclusion.stats["awake_overlap_ms_max"] == 1.0  # active again from 21 on
    assert exclusion.stats["overlaps_with_deadline"] == 0
    assert exclusion.stats["overlaps_without_deadline"] == 1
    fencing = Fencing().check(history, known)
    assert fencing.valid is Valid.FALSE
    (stale,) = fencing.anomalies
    assert (stale.kind, stale.side) == ("stale-write-accepted", Side.RESOURCE)
    events = [history.ops[i] for i in stale.ops]
    assert {(op.process, op.f) for op in events} == {
        (0, "acquire"),
        (1, "acquire"),
        (0, "write"),
        (1, "write"),
    }
    assert all(op.type == "ok" for op in events)


def test_fenced_resource_refuses_the_late_write() -> None:
    run, log = holder_pause(accepted=False)
    known = context(ttl_ms=10, faults=[PAUSE], resource=log, resource_mode="fenced")
    fencing = Fencing().check(run.history(), known)
    assert fencing.valid is Valid.TRUE, fencing.says
    assert fencing.stats["stale_refused"] == 1
    assert "1 late ones were refused" in fencing.says


def test_own_deadline_ends_the_belief_where_the_client_keeps_it() -> None:
    run, _ = holder_pause(accepted=True)
    known = context(ttl_ms=10, faults=[PAUSE], enforced_deadline=True)
    assert Exclusion().check(run.history(), known).valid is Valid.TRUE


@pytest.mark.parametrize("with_log", [True, False])
def test_stale_write_without_tokens_is_found_by_the_order_of_the_holds(with_log: bool) -> None:
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 11, 12, hold="b")
    run.op(1, "write", 14, 15, key="r0", hold="b", value=2)
    run.op(0, "write", 21, 22, key="r0", hold="a", value=1)
    log = [record(1, 14.5, "b", 2), record(2, 21.5, "a", 1)] if with_log else []
    result = Fencing().check(run.history(), context(ttl_ms=10, resource=log))
    assert result.valid is Valid.FALSE, result.says
    assert result.anomalies[0].kind == "stale-write-accepted"
    assert len(result.anomalies[0].ops) == 4


def test_double_grant_is_the_services_fault_in_both_views() -> None:
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a").op(1, "acquire", 3, 5, hold="b")
    run.op(0, "release", 7, 8, hold="a").op(1, "release", 9, 10, hold="b")
    lease = Lease().check(run.history(), context())
    assert lease.valid is Valid.FALSE
    assert lease.anomalies[0].kind == "double-grant"
    assert lease.anomalies[0].side is Side.SERVICE
    assert lease.anomalies[0].overlap_ns == 2 * MS
    assert Exclusion().check(run.history(), context()).anomalies[0].side is Side.SERVICE


def test_token_inversion_is_named_with_both_grants() -> None:
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a", token=5).op(0, "release", 3, 4, hold="a")
    run.op(1, "acquire", 5, 6, hold="b", token=4).op(1, "release", 7, 8, hold="b")
    run.op(1, "write", 6.2, 6.4, key="r0", hold="b", token=4, value=1)
    assert Lease().check(run.history(), context()).anomalies[0].kind == "token-inversion"
    assert Fencing().check(run.history(), context()).anomalies[0].kind == "token-inversion"


def test_a_broken_lease_does_not_turn_right_tokens_into_an_inversion() -> None:
    """Found live with a fast server clock: the waiter's zone lies before the former holder's."""
    run = Run()
    run.op(0, "acquire", 10, 11, hold="a", token=4)
    run.op(1, "acquire", 0, 16, hold="b", token=5)  # waited longer than the lease of 10
    run.op(0, "write", 14, 14.5, key="r0", hold="a", token=4, value=1)
    run.op(1, "write", 17, 18, key="r0", hold="b", token=5, value=2)
    log = [record(1, 14.2, "a", 1, token=4), record(2, 17.5, "b", 2, token=5)]
    result = Fencing().check(run.history(), context(ttl_ms=10, resource=log))
    assert result.valid is Valid.TRUE, result.says


def test_an_unknown_grant_by_a_reused_owner_goes_to_the_engine() -> None:
    run = Run()
    run.op(0, "acquire", 0, 1, kind="info").op(0, "release", 3, 9)
    run.op(1, "acquire", 2, 5).op(1, "release", 7, 8)
    result = Lease().check(run.history(), context())
    assert result.valid is Valid.TRUE
    assert result.stats["decided_by"].startswith("general engine")
    run.op(2, "acquire", 5, 6).op(2, "release", 8, 9)
    result = Lease().check(run.history(), context())
    assert result.valid is Valid.FALSE
    assert result.anomalies[0].ops


def test_killed_and_told_workers_stop_believing() -> None:
    run = Run().op(0, "acquire", 0, 2, hold="a").op(1, "acquire", 11, 12, hold="b")
    run.op(1, "release", 14, 15, hold="b")
    killed = context(ttl_ms=10, faults=[fault("worker-kill", "w0", 5, 6)])
    assert Exclusion().check(run.history(), killed).valid is Valid.TRUE
    assert Exclusion().check(run.history(), context(ttl_ms=10)).valid is Valid.FALSE
    run.event("nemesis", "lost", 11.5, hold="a", process=0)
    assert Exclusion().check(run.history(), context(ttl_ms=10)).valid is Valid.TRUE


def test_a_process_number_is_mapped_to_its_worker() -> None:
    run = Run().op(4, "acquire", 0, 2, hold="a").op(1, "acquire", 11, 12, hold="b")
    killed = context(ttl_ms=10, workers=4, faults=[fault("worker-kill", "w0", 5, 6)])
    assert Exclusion().check(run.history(), killed).valid is Valid.TRUE


def test_refusal_without_reason() -> None:
    run = Run().op(0, "acquire", 0, 1, hold="a", token=2)
    run.op(0, "write", 2, 3, key="r0", hold="a", token=2, value=1)
    log = [
        record(1, 2.1, "a", 0, token=2),
        record(2, 2.5, "a", 1, token=2, accepted=False, why="stale"),
    ]
    result = Fencing().check(run.history(), context(resource=log, resource_mode="fenced"))
    assert result.anomalies[0].kind == "refused-without-reason"


def test_nothing_to_go_by_is_unknown() -> None:
    for checker in (Lease(), Exclusion(), Fencing(), Effects()):
        result = checker.check(History([]), context())
        assert result.valid is Valid.UNKNOWN
        assert result.says


def section(run: Run, process: int, hold: str, at: float, seen: Any, wrote: int) -> None:
    """One read-modify-write of 4 ms under a lock, from ``at`` on."""
    run.op(process, "acquire", at, at + 1, hold=hold)
    run.op(process, "read", at + 1, at + 2, key="r0", hold=hold, value=seen)
    run.op(process, "write", at + 2, at + 3, key="r0", hold=hold, value=wrote)
    run.op(process, "release", at + 3, at + 4, hold=hold)


@pytest.mark.parametrize("with_log", [True, False])
def test_lost_update_although_the_holds_are_apart(with_log: bool) -> None:
    good, bad = Run(), Run()
    for run, seen in ((good, 1), (bad, None)):
        section(run, 0, "a", 0, None, 1)
        section(run, 1, "b", 10, seen, 2)
    log = [record(1, 2.5, "a", 1), record(2, 12.5, "b", 2)] if with_log else []
    assert Effects().check(good.history(), context(resource=log)).valid is Valid.TRUE
    assert Lease().check(bad.history(), context()).valid is Valid.TRUE
    result = Effects().check(bad.history(), context(resource=log))
    assert result.valid is Valid.FALSE
    assert result.anomalies[0].kind == "lost-update"
    assert result.anomalies[0].side is Side.RESOURCE


def test_one_tick_done_twice() -> None:
    run = Run().op(0, "write", 0, 1, key="r0", hold="a", tick=7, value=1)
    run.op(1, "write", 2, 3, key="r0", hold="b", tick=8, value=2)
    assert Effects().check(run.history(), context()).valid is Valid.TRUE
    run.op(1, "write", 5, 6, key="r0", hold="b", tick=7, value=3)
    result = Effects().check(run.history(), context())
    assert result.anomalies[0].kind == "double-effect"
