"""Property tests: every monitor (batch and online) against engine and oracle on random histories.

Hypothesis draws the seed; the histories come from ``checkers.fuzz_draw``.  The long version of this
is ``python -m checkers.fuzz``.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.fuzz import answers, disagree, fuzz, shrink, targets
from checkers.fuzz_draw import Act, intervals_of
from checkers.monitors.span import Verdict
from checkers.validate import problems
from harness.core.history import History
from tests.checkers.histories import no_deadline

TARGETS = targets()


@pytest.mark.parametrize("name", sorted(TARGETS))
@settings(no_deadline, max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_all_agree(name: str, seed: int) -> None:
    target = TARGETS[name]
    acts = target.draw(random.Random(seed))
    found = answers(target, intervals_of(acts))
    assert not disagree(found), (found, shrink(target, acts))


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_draws_are_worth_it(name: str) -> None:
    """Both verdicts occur, and the monitor itself decides most of the time."""
    counts, bad = fuzz(name, 300, 4)
    assert bad is None
    assert counts["invalid"] > 10
    assert counts["valid"] > 100
    assert counts["not exact"] < counts["rounds"] * 0.7


def test_a_wrong_monitor_is_caught_and_shrunk() -> None:
    target = TARGETS["mutex"]
    blind = type(target)(target.draw, lambda _: Verdict(model="mutex"), target.model)
    for seed in range(200):
        acts = blind.draw(random.Random(seed))
        if disagree(answers(blind, intervals_of(acts))):
            assert 1 <= len(shrink(blind, acts)) <= 3
            return
    raise AssertionError("no drawn history was a violation")


def test_drawn_histories_are_well_formed() -> None:
    for name, target in TARGETS.items():
        for seed in range(50):
            acts: list[Act] = target.draw(random.Random(f"{name}/{seed}"))
            events = [
                event
                for op in intervals_of(acts)
                for event in (op.invoke, op.complete)
                if event is not None
            ]
            events.sort(key=lambda event: event.index)
            assert problems(History(events)) == []
