"""Orders for the viewer: legal, in real time, and as far as they go."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given

from checkers.models import make
from checkers.oracle import linearizable, precedes
from checkers.orders import legal_orders
from harness.core.history import History
from tests.checkers.sketch import history
from tests.checkers.test_api import small_histories


def test_order_of_a_legal_history() -> None:
    some = history("A a 0-2; R a 5-8; A b 1-7; R b 9-10")
    ((steps,),) = legal_orders(some, "mutex", {}).values()
    ops = [some.intervals()[place].invoke for place, _ in steps]
    assert [(op.f, op.value["owner"]) for op in ops] == [
        ("acquire", "a"),
        ("release", "a"),
        ("acquire", "b"),
        ("release", "b"),
    ]
    assert steps[1][1] == "()"


def test_the_longest_beginning_of_an_illegal_one() -> None:
    some = history("A a 0-2; R a 7-8; A b 3-5; R b 9-10")
    ((steps,),) = legal_orders(some, "mutex", {}).values()
    assert [place for place, _ in steps] == [0]  # b's grant is what no order reaches


def test_keys_apart_and_what_says_nothing_to_the_model() -> None:
    some = History(
        [*history("A a 0-1; R a 2-3", key="x").ops, *history("r c 0-1 v=3", key="y").ops]
    )
    for index, op in enumerate(some.ops):
        op.index = index
    assert set(legal_orders(some, "mutex", {})) == {"x"}


@given(some=small_histories())
def test_orders_are_legal_and_respect_real_time(some: History) -> None:
    model = make("mutex")
    intervals = some.intervals()
    whole = linearizable(intervals, model)
    for orders in legal_orders(some, "mutex", {}).values():
        for steps in orders:
            chosen = [intervals[place] for place, _ in steps]
            state = model.init
            for op in chosen:
                state = model.step(state, model.prepare(op))
                assert state is not None
            for earlier, later in combinations(chosen, 2):
                assert not precedes(later, earlier)
            required = [op for op in intervals if op.outcome == "ok"]
            if whole:
                assert all(op in chosen for op in required)
            else:
                assert not all(op in chosen for op in required)
