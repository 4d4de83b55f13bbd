"""What becomes of the lock of a holder that was hit."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.recovery import Recovery
from harness.core.result import Result, Valid
from tests.checkers.runs import Run, context, fault


def check(run: Run, *faults: Any, **fields: Any) -> Result:
    fields = {"ttl_ms": 1000, "recovery_ms_max": 500, "faults": list(faults), **fields}
    return Recovery().check(run.history(), context(**fields))


def death(granted: float | None, *, asked: float = 50) -> Run:
    """0 dies at 100 with a lease up to 1002; 1 asks from ``asked`` on."""
    run = Run().op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", asked, granted, hold="b")
    return run.event(1, "note", 5000)


KILL = fault("worker-kill", "w0", 100, 300)


def test_a_lock_that_is_free_after_its_lease_is_taken_over_in_time() -> None:
    found = check(death(1100), KILL)
    assert found.valid is Valid.TRUE
    assert found.stats["takeover_ms"] == 1000


@pytest.mark.parametrize("granted", [1600, None])
def test_a_take_over_after_the_bound_is_a_violation(granted: float | None) -> None:
    found = check(death(granted), KILL)
    assert found.valid is Valid.FALSE
    assert found.anomalies[0].kind == "not-taken-over"


def test_time_in_which_nobody_asked_does_not_count() -> None:
    assert check(death(1900, asked=1800), KILL).valid is Valid.TRUE


def test_two_short_waits_are_not_one_long_wait() -> None:
    run = Run().op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 50, 1300, hold="b", kind="fail", error="busy")
    run.op(1, "acquire", 1700, 1900, hold="c")
    assert check(run, KILL).valid is Valid.TRUE


def test_another_fault_is_an_excuse() -> None:
    away = fault("node-kill", "redis", 900, 1400, id=2)
    assert check(death(1600), KILL, away).valid is Valid.TRUE


@pytest.mark.parametrize("began", [1100, 1400])
def test_a_fault_that_begins_while_somebody_waits_is_an_excuse_too(began: float) -> None:
    """The lease was over at 1002; the bound would have been over at 1502."""
    away = fault("node-kill", "redis", began, 3000, id=2)
    assert check(death(3100), KILL, away).valid is Valid.TRUE
    assert check(death(3600), KILL, away).valid is Valid.FALSE
    assert check(death(1600), KILL, fault("node-kill", "redis", 1550, 1580, id=2)).valid is (
        Valid.FALSE
    ), "it came when the bound was over"


def test_who_gave_up_asks_no_more() -> None:
    """An attempt of unknown outcome is no wait to the end of the history."""
    run = Run().op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 50, 1300, hold="b", kind="info", error="timed out")
    assert check(run.event(1, "note", 5000), KILL).valid is not Valid.FALSE


def test_a_renewal_moves_the_end_of_the_lease() -> None:
    run = death(2300).op(0, "renew", 90, 95, hold="a", ttl_ns=1_900_000_000)
    assert check(run, KILL).valid is Valid.TRUE


def test_a_renewal_under_way_may_arrive_until_its_client_dies() -> None:
    """Sent at 60, no answer, death at 100: the lease may last to 1100, and the bound to 1600."""
    run = death(1595).op(0, "renew", 60, None, hold="a")
    assert check(run, KILL).valid is Valid.TRUE
    late = death(1605).op(0, "renew", 60, None, hold="a")
    assert check(late, KILL).valid is Valid.FALSE


def test_the_lock_of_a_connection_is_free_at_its_death() -> None:
    late = Recovery().check(
        death(700).history(),
        context(recovery_ms_max=500, faults=[KILL], lease_kind="connection"),
    )
    assert late.valid is Valid.FALSE


def test_without_a_death_there_are_figures_and_no_verdict() -> None:
    pause = fault("worker-pause", "w0", 100, 2000)
    found = check(death(4000), pause)
    assert found.valid is Valid.UNKNOWN
    assert found.stats["applies"] is False
    assert found.stats["takeover_ms"] == 3900


def test_a_fault_on_a_link_hits_the_holder_behind_it() -> None:
    found = check(death(1100), fault("jam", "w0-redis", 100, 2000))
    assert found.stats["hit_holders"] == 1
    assert found.stats["takeover_ms"] == 1000


def test_a_death_that_nobody_waits_for_proves_nothing() -> None:
    run = Run().op(0, "acquire", 0, 2, hold="a").event(1, "note", 5000)
    assert check(run, KILL).valid is Valid.UNKNOWN
