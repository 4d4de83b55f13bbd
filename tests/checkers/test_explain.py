"""Explanations: the fewest operations, a true picture, and a way out that the engine confirms."""

from __future__ import annotations

import random

import pytest

from checkers.engine import EngineResult, check
from checkers.engine.sample import SAMPLED, random_history, random_model
from checkers.explain import explain
from checkers.minimise import smallest, weaken
from checkers.models import make
from checkers.oracle import linearizable
from checkers.picture import COLUMNS
from harness.core.history import Interval, pair
from harness.core.result import Anomaly, Result, Side, Valid
from tests.checkers import sketch
from tests.checkers.examples import NEGATIVE, Row, intervals, model_of
from tests.checkers.test_engine import double_grant_with_unknowns

# Kind and number of proving operations of each negative example.
EXPECTED = {
    "M2": ("double-grant", 2),
    "M4": ("double-grant", 2),
    "M6": ("double-grant", 2),
    "M9": ("no-room-for-hold", 2),
    "M12": ("lost-lock", 2),
    "R2": ("double-grant", 3),
    "R3": ("double-grant", 2),
    "R4": ("double-grant", 3),
    "R5": ("release-without-hold", 2),
    "S2": ("too-many-holders", 3),
    "S4": ("no-room-for-hold", 3),
    "W2": ("double-grant", 2),
    "W3": ("no-room-for-hold", 3),
    "F2": ("token-inversion", 2),
    "F5": ("double-grant", 2),
    "T2": ("stale-write-accepted", 2),
    "T4": ("refused-without-reason", 1),
    "T6": ("stale-write-accepted", 2),
    "C2": ("lost-update", 2),
    "C3": ("impossible-read", 2),
    "C5": ("impossible-read", 2),
    "C6": ("impossible-read", 2),
    "L2": ("early-takeover", 2),
    "L3": ("early-takeover", 2),
    "L4": ("lost-lock", 2),
}


@pytest.mark.parametrize("row", NEGATIVE, ids=[row[0] for row in NEGATIVE])
def test_negative_examples(row: Row) -> None:
    ops, model = intervals(row), model_of(row)
    told = explain(ops, model, check(ops, model))
    kind, count = EXPECTED[row[0]]
    assert (told.kind, len(told.ops)) == (kind, count)
    assert len(told.ops) <= 4
    assert told.smallest
    assert told.valid == Valid.FALSE
    assert told.legal_if
    assert told.side == (Side.RESOURCE if row[1] in ("store", "cas") else Side.SERVICE)
    assert not linearizable(told.ops, model), "the set alone is no legal history either"
    assert all(len(line) <= COLUMNS for line in told.text().splitlines())
    assert told == explain(ops, model, check(ops, model)), "deterministic"


def test_every_negative_example_is_expected() -> None:
    assert {row[0] for row in NEGATIVE} == set(EXPECTED)


DOUBLE_GRANT = """\
double-grant (service) on k0: worker 1 was told at 5 ns that it holds the lock (B), but the hold of
worker 0 (A) cannot end before 7 ns. Both held for 2 ns. A, B prove it by themselves, whatever all
other operations did.

worker 0  [====A====]                             [====c====]
worker 1                      [====B====]                             [====d====]
          |         |         |         |         |         |         |         |
          0         2         3         5         7         8         9         10  ns

A  acquire k0 by worker 0 hold a owner a: 0 .. 2 ns, ok
B  acquire k0 by worker 1 hold b owner b: 3 .. 5 ns, ok
c  release k0 by worker 0 hold a owner a: 7 .. 8 ns, ok
d  release k0 by worker 1 hold b owner b: 9 .. 10 ns, ok

It would be legal if B had been answered at 7 ns or later (it was at 5 ns)."""

NO_ROOM = """\
worker 0  [=a=================================[=====C=====]=========================....
worker 1              [=====B=====]                                   [=====d=====]
          |           |           |           |           |           |           |
          0           2           4           5           7           8           9  ms

a  acquire k0 by worker 0 hold a owner a: 0 ... ms, outcome unknown
B  acquire k0 by worker 1 hold b owner b: 2 .. 4 ms, ok
C  release k0 by worker 0 hold a owner a: 5 .. 7 ms, ok
d  release k0 by worker 1 hold b owner b: 8 .. 9 ms, ok"""


def test_text_of_a_double_grant() -> None:
    history = sketch.history("A a 0-2; R a 7-8; A b 3-5; R b 9-10", key="k0")
    told = explain(history, make("mutex"))
    assert told.text() == DOUBLE_GRANT
    assert told.overlap_ns == 2


def test_picture_with_an_open_end_in_milliseconds() -> None:
    history = sketch.history("A a 0-*; R a 5-7; A b 2-4; R b 8-9", key="k0")
    for op in history.ops:
        op.time *= 1_000_000
    assert explain(history, make("mutex")).picture == NO_ROOM


def test_offered_change_makes_it_legal() -> None:
    history = sketch.history("A a 0-2; R a 7-8; A b 3-5; R b 9-10", key="k0")
    assert "answered at 7 ns" in (explain(history, make("mutex")).legal_if or "")
    changed = sketch.history("A a 0-2; R a 7-8; A b 3-7; R b 9-10", key="k0")
    assert check(changed.intervals(), make("mutex")).valid == Valid.TRUE


@pytest.mark.parametrize("unknown", [0, 17])
def test_a_thousand_operations_shrink_to_two(unknown: int) -> None:
    ops = double_grant_with_unknowns(1000, unknown)
    told = explain(ops, make("mutex"))
    assert told.kind == "double-grant"
    assert len(told.ops) == 2
    assert told.smallest
    assert told.overlap_ns is not None


@pytest.mark.parametrize("name", SAMPLED)
def test_random_violations(name: str) -> None:
    """The set fails by itself, and with all others weakened; one operation fewer does not."""
    found = 0
    for seed in range(400):
        rng = random.Random(f"explain/{name}/{seed}")
        model = random_model(name, rng)
        ops = pair(random_history(model, rng))
        if linearizable(ops, model):
            continue
        found += 1
        told = explain(ops, model)
        assert told.valid == Valid.FALSE
        assert told.kind != "not-minimised"
        assert not linearizable(told.ops, model)
        assert told.says
        assert told.picture
        assert all(len(line) <= COLUMNS for line in told.text().splitlines())
        least = smallest(ops, model)
        assert least is not None
        kept = list(least.ops)
        for dropped in kept:
            soft = [weaken(op) for op in [*least.rest, dropped]]
            lighter = [op for op in kept if op is not dropped]
            lighter += [op for op in soft if op is not None]
            assert linearizable(lighter, model), (name, seed)
        if found == 12:
            break
    assert found >= 5


def test_weakened_operations() -> None:
    ok, refused, lost = sketch.history("A a 0-2; R b 3-4 fail; A c 5-*").intervals()
    soft = weaken(ok)
    assert soft is not None
    assert soft.outcome == "info"
    assert soft.complete is not None
    assert soft.complete.extra == {"until_ns": 2}
    assert weaken(refused) is None
    assert weaken(lost) is lost


def test_valid_and_unknown() -> None:
    good = sketch.history("A a 0-2; R a 5-8", key="k")
    assert explain(good, make("mutex")).says.startswith("Nothing to explain")
    stuck = EngineResult(valid=Valid.UNKNOWN, strategy="none", why="limit of time reached")
    ops: list[Interval] = [
        *sketch.history("A a 0-*; A b 1-2", holds=False, key="k").intervals(),
    ]
    told = explain(ops, make("mutex"), stuck)
    assert told.valid == Valid.UNKNOWN
    for part in ("limit of time", "1 of 2 operations", "no hold id", "More time"):
        assert part in told.says


def test_explains_the_result_of_a_monitor() -> None:
    history = sketch.history("A a 0-2; R a 7-8; A b 3-5; R b 9-10", key="k0")
    found = Anomaly(kind="double-grant", key="k0", ops=[1, 3])
    result = Result(checker="mutex", valid=Valid.FALSE, says="two holders", anomalies=[found])
    assert explain(history, make("mutex"), result).text() == DOUBLE_GRANT


def test_says_so_if_the_engine_finds_nothing() -> None:
    history = sketch.history("A a 0-2; R a 5-8", key="k0")
    result = Result(checker="mutex", valid=Valid.FALSE, says="two holders")
    told = explain(history, make("mutex"), result)
    assert told.kind == "not-minimised"
    assert "two holders" in told.says
