"""Clients that wait for each other in a circle."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.deadlock import Deadlock
from harness.core.result import Result, Valid
from tests.checkers.runs import Run, context, fault


def check(run: Run, **fields: Any) -> Result:
    return Deadlock().check(run.history(), context(**{"ttl_ms": 10_000, **fields}))


def crossed() -> Run:
    """0 has k0 and wants k1, 1 has k1 and wants k0."""
    run = Run()
    run.op(0, "acquire", 0, 1, hold="a0", key="k0").op(1, "acquire", 0, 1, hold="b1", key="k1")
    run.op(0, "acquire", 5, 500, hold="a1", key="k1", kind="fail", error="busy")
    run.op(1, "acquire", 7, 600, hold="b0", key="k0")
    return run.op(0, "release", 510, 511, hold="a0", key="k0")


def test_two_that_wait_for_each_other_are_a_circle() -> None:
    found = check(crossed())
    assert found.valid is Valid.FALSE
    assert found.stats["cycles"] == 1
    assert found.stats["longest_ms"] == 493, "from 7 on, until 0 gave up at 500"
    assert len(found.anomalies[0].ops) == 4


def test_three_in_a_ring() -> None:
    run = Run()
    for who in range(3):
        run.op(who, "acquire", 0, 1, hold=f"{who}a", key=f"k{who}")
        run.op(who, "acquire", 5 + who, None, hold=f"{who}b", key=f"k{(who + 1) % 3}")
    found = check(run)
    assert found.stats["cycles"] == 1
    assert len(found.anomalies[0].ops) == 6


def test_one_order_for_all_makes_no_circle() -> None:
    run = Run()
    run.op(0, "acquire", 0, 1, hold="a0", key="k0").op(0, "acquire", 2, 3, hold="a1", key="k1")
    run.op(1, "acquire", 1, 60, hold="b0", key="k0")
    run.op(0, "release", 40, 41, hold="a1", key="k1").op(0, "release", 50, 51, hold="a0", key="k0")
    run.op(1, "acquire", 61, 62, hold="b1", key="k1")
    assert check(run).valid is Valid.TRUE


def test_a_lease_that_is_over_breaks_the_circle() -> None:
    assert check(crossed(), ttl_ms=6).valid is Valid.TRUE


def test_one_lock_at_a_time_shows_nothing() -> None:
    run = Run().op(0, "acquire", 0, 1, hold="a").op(1, "acquire", 0, None, hold="b")
    found = check(run)
    assert found.valid is Valid.UNKNOWN
    assert found.stats["applies"] is False


@pytest.mark.parametrize("given_up", [6.5, 100])
def test_a_wait_that_was_given_up_closes_no_circle(given_up: float) -> None:
    """Its outcome is open, but its client has long turned to something else."""
    run = Run()
    run.op(0, "acquire", 0, 1, hold="a0", key="k0").op(1, "acquire", 0, 1, hold="b1", key="k1")
    run.op(0, "acquire", 5, given_up, hold="a1", key="k1", kind="info", error="timed out")
    run.op(1, "acquire", 7, 600, hold="b0", key="k0", kind="fail", error="busy")
    found = check(run)
    assert found.stats["cycles"] == (given_up > 7)
    if given_up > 7:
        assert found.stats["longest_ms"] == 93, "until 0 gave up, not to the end of the history"


def test_a_client_that_was_killed_waits_no_more() -> None:
    run = Run()
    run.op(0, "acquire", 0, 1, hold="a0", key="k0").op(1, "acquire", 0, 1, hold="b1", key="k1")
    run.op(1, "acquire", 2, None, hold="b0", key="k0")
    run.op(0, "acquire", 5, 500, hold="a1", key="k1", kind="fail", error="busy")
    assert check(run).valid is Valid.FALSE
    assert check(run, faults=[fault("worker-kill", "w1", 3, 400)]).valid is Valid.TRUE


@st.composite
def tangles(draw: st.DrawFn) -> tuple[Run, dict[int, tuple[str, str]]]:
    """Clients that each have a lock of their own and all wait for one other, from then on."""
    count = draw(st.integers(2, 5))
    run, wants = Run(), {}
    for who in range(count):
        run.op(who, "acquire", 0, 1, hold=f"{who}a", key=f"k{who}")
        goal = (who + draw(st.integers(1, count - 1))) % count
        run.op(who, "acquire", 5 + who, None, hold=f"{who}b", key=f"k{goal}")
        wants[who] = (f"k{who}", f"k{goal}")
    return run, wants


def circles(wants: dict[int, tuple[str, str]]) -> int:
    """Brute force: every ordered choice of clients in which each wants what the next one has."""
    found = set()
    for size in range(2, len(wants) + 1):
        for chosen in permutations(wants, size):
            pairs = zip(chosen, (*chosen[1:], chosen[0]), strict=True)
            if all(wants[a][1] == wants[b][0] for a, b in pairs):
                found.add(frozenset(chosen))
    return len(found)


@given(tangles())
def test_as_many_circles_as_brute_force_finds(
    tangle: tuple[Run, dict[int, tuple[str, str]]],
) -> None:
    run, wants = tangle
    found = check(run)
    assert found.stats["cycles"] == circles(wants)
    assert (found.valid is Valid.FALSE) == bool(circles(wants))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_circle_is_told_once_whatever_the_order_of_its_waits(order: tuple[int, ...]) -> None:
    run = Run()
    for who in range(3):
        run.op(who, "acquire", 0, 1, hold=f"{who}a", key=f"k{who}")
        run.op(who, "acquire", 5 + order[who], None, hold=f"{who}b", key=f"k{(who + 1) % 3}")
    assert check(run).stats["cycles"] == 1
