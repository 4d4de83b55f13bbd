"""Whether a lock is granted while a fault lasts that leaves a majority of the servers."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.availability import Availability
from harness.core.protocols import FaultWindow
from harness.core.result import Result, Valid
from tests.checkers.runs import Run, context, fault

SERVERS = ("a", "b", "c")
DOWN = fault("node-kill", "a", 100, 5000)


def check(run: Run, *faults: FaultWindow, **fields: Any) -> Result:
    known = {"ttl_ms": 500, "grant_ms_max": 1000, "faults": list(faults), "servers": SERVERS}
    return Availability().check(run.history(), context(**{**known, **fields}))


def refused(*, pause: float = 10, until: float = 4000, kind: str = "info") -> Run:
    """0 has the lock and gives it back at 20; after 100 nobody is granted it any more."""
    run = Run().op(0, "acquire", 0, 2, hold="g").op(0, "release", 20, 21, hold="g")
    at, number = 100.0, 1
    while at < until:
        process = number * 4 if kind == "info" else 0  # an unknown outcome retires a process
        run.op(process, "acquire", at, at + 50, hold=f"h{number}", kind=kind, error="no quorum")
        at, number = at + 50 + pause, number + 1
    return run


@pytest.mark.parametrize("kind", ["info", "fail"])
def test_a_lock_that_nobody_gets_while_one_of_three_is_down(kind: str) -> None:
    found = check(refused(kind=kind), DOWN)
    assert found.valid is Valid.FALSE
    assert found.anomalies[0].kind == "not-granted"
    assert "during node-kill" in found.says
    assert "'no quorum'" in found.says
    assert len(found.anomalies[0].ops) > 2, "the attempts prove it"


def test_long_pauses_between_attempts_are_no_trying() -> None:
    """A tenth of the bound is 100 ms."""
    assert check(refused(pause=100), DOWN).valid is Valid.FALSE
    assert check(refused(pause=101), DOWN).valid is not Valid.FALSE


def test_a_grant_within_the_bound_ends_the_wait() -> None:
    run = refused(until=900).op(1, "acquire", 900, 950, hold="z").op(1, "release", 960, 961)
    found = check(run, DOWN)
    assert found.valid is Valid.TRUE
    assert found.stats["longest_vain_ms"] == 850


def test_a_held_lock_is_asked_for_rightly_in_vain() -> None:
    run = Run().op(0, "acquire", 0, 2, hold="a")
    run.op(1, "acquire", 200, 4000, hold="b", kind="fail", error="busy")
    assert check(run.op(0, "release", 4100, 4101, hold="a"), DOWN).valid is not Valid.FALSE


@pytest.mark.parametrize(
    "excuse",
    [
        fault("node-kill", "b", 100, 5000, id=2),
        fault("partition", "b", 100, 5000, id=2),
        fault("node-pause", "b", 100, None, id=2),
    ],
    ids=lambda one: f"{one.kind} {one.targets[0]}",
)
def test_who_reaches_no_majority_is_excused(excuse: FaultWindow) -> None:
    assert check(refused(), DOWN, excuse).valid is Valid.UNKNOWN


def test_a_client_without_its_links_is_excused_and_others_are_not() -> None:
    cuts = [fault("sever", f"w0-{server}", 100, 5000, id=n) for n, server in enumerate("bc", 2)]
    assert check(refused(kind="fail"), *cuts).valid is Valid.UNKNOWN
    others = [fault("sever", f"w1-{server}", 100, 5000, id=n) for n, server in enumerate("bc", 2)]
    assert check(refused(kind="fail"), *others).valid is Valid.FALSE


def test_one_server_of_one_is_everything() -> None:
    assert check(refused(), DOWN, servers=("a",)).valid is Valid.UNKNOWN
    assert check(refused(), DOWN, servers=()).valid is Valid.UNKNOWN


def test_without_trying_during_the_fault_nothing_is_shown() -> None:
    run = Run().op(0, "acquire", 0, 2, hold="a").op(0, "release", 20, 21, hold="a")
    found = check(run.event(1, "note", 6000), DOWN)
    assert found.valid is Valid.UNKNOWN
    assert "while a fault lasted" in found.says
    assert check(Run().event(1, "note", 6000), DOWN).valid is Valid.UNKNOWN


def test_a_fault_too_short_for_the_bound_shows_nothing() -> None:
    short = fault("node-kill", "a", 100, 600)
    found = check(refused(until=900), short)
    assert found.valid is Valid.UNKNOWN
    assert "no fault lasted longer" in found.says


def test_without_a_bound_there_are_figures() -> None:
    found = check(refused(pause=0), DOWN, grant_ms_max=None)
    assert found.stats["applies"] is False
    assert found.stats["longest_vain_ms"] == 3900
