"""The oracle against hand-made verdicts, and its lease against a second, different opinion."""

from __future__ import annotations

import random

import pytest

from checkers.engine.sample import random_history
from checkers.models import make
from checkers.models.lease import Lease
from checkers.oracle import linearizable, precedes
from harness.core.errors import UserError
from harness.core.history import Interval, Op, pair
from tests.checkers import lease_times, sketch
from tests.checkers.examples import EXAMPLES, NAMES, Row, intervals, model_of


@pytest.mark.parametrize("row", EXAMPLES, ids=NAMES)
def test_examples(row: Row) -> None:
    assert linearizable(intervals(row), model_of(row)) == row[4]


def test_empty_history_is_linearizable() -> None:
    assert linearizable([], make("mutex"))


def test_keys_are_independent() -> None:
    one = sketch.history("A a 0-2; R a 7-8", key="x").ops
    two = sketch.history("A b 0-5; R b 9-10", key="y").ops
    other = [Op(op.index + 10, op.time, op.process, op.type, op.f, "y", op.value) for op in two]
    for op in other:
        op.process = 7
    assert linearizable(pair([*one, *other]), make("mutex"))


def test_closed_intervals_and_line_order() -> None:
    touching = sketch.history("A a 0-2; R a 4-6; A b 1-4; R b 7-8").intervals()
    assert linearizable(touching, make("mutex"))
    ops = [  # one process: a release that ends at the tick its next acquire begins
        Op(0, 0, 0, "invoke", "write", "k", 1),
        Op(1, 5, 0, "ok", "write", "k", 1),
        Op(2, 5, 0, "invoke", "read", "k", None),
        Op(3, 5, 0, "ok", "read", "k", 0),
    ]
    first, second = pair(ops)
    assert precedes(first, second)
    assert not precedes(second, first)
    assert not linearizable([first, second], make("cas", initial=0))
    other = [Op(op.index, op.time, op.process + (op.index > 1), *_rest(op)) for op in ops]
    assert linearizable(pair(other), make("cas", initial=0))


def _rest(op: Op) -> tuple[str, str, str | None, object]:
    return op.type, op.f, op.key, op.value


def test_unknown_outcome_after_later_operations_of_its_process() -> None:
    ops = [
        Op(0, 0, 0, "invoke", "write", "k", 1),
        Op(1, 1, 0, "invoke", "read", "k", None),
        Op(2, 2, 0, "ok", "read", "k", 0),
        Op(3, 3, 0, "invoke", "read", "k", None),
        Op(4, 4, 0, "ok", "read", "k", 1),
    ]
    assert linearizable(pair(ops), make("cas", initial=0))


@pytest.mark.parametrize(("until", "verdict"), [(None, True), (4, True), (3, False)])
def test_until_bounds_an_unknown_outcome(until: int | None, verdict: bool) -> None:
    write = Op(0, 0, 0, "invoke", "write", "k", 1)
    if until is not None:
        write.extra = {"until_ns": until}
    ops = [
        write,
        Op(1, 1, 1, "invoke", "read", "k", None),
        Op(2, 2, 1, "ok", "read", "k", 0),
        Op(3, 4, 1, "invoke", "read", "k", None),
        Op(4, 4, 1, "ok", "read", "k", 0),
        Op(5, 4, 2, "invoke", "read", "k", None),
        Op(6, 9, 2, "ok", "read", "k", 1),
    ]
    assert linearizable(pair(ops), make("cas", initial=0)) == verdict


def test_too_many_operations_are_refused() -> None:
    text = "; ".join(
        f"A h{i} {3 * i}-{3 * i + 1}; R h{i} {3 * i + 1}-{3 * i + 2}" for i in range(9)
    )
    with pytest.raises(UserError, match=r"18 operations.*limit is 16"):
        linearizable(sketch.history(text, key="k").intervals(), make("mutex"))


@pytest.mark.parametrize("kind", ["safe", "exact"])
def test_lease_against_difference_constraints(kind: str) -> None:
    """Two ways to decide times: earliest points or zones, and negative cycles."""
    compared = {True: 0, False: 0}
    for seed in range(1500):
        rng = random.Random(f"{kind}/{seed}")
        model = Lease(ttl_ns=rng.randint(2, 9), property=kind)
        ops = [_with_hold(op) for op in pair(random_history(model, rng, ops_max=6))]
        if len(ops) > 6:
            continue
        want = lease_times.legal(ops, model.ttl_ns or 0, exact=kind == "exact")
        assert linearizable(ops, model) == want, (kind, seed)
        compared[want] += 1
    assert min(compared.values()) > 80, compared


def _with_hold(op: Interval) -> Interval:
    """The same with a hold id, since the second opinion knows nothing else."""
    hold = op.field("hold")
    if hold is None:
        owner = op.field("owner")
        hold = f"p{op.invoke.process}" if owner is None else owner
    for event in (op.invoke, op.complete):
        if event is not None:
            extra = {"until_ns": event.extra["until_ns"]} if event.extra else {}
            event.value = {**(event.value or {}), "hold": hold, **extra}
    return op
