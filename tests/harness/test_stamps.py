"""Workers' stamps replace the harness' where they are consistent."""

from __future__ import annotations

from harness.core.history import Op
from harness.stamps import tighten


def op(time: int, process: int, type_: str, extra: dict[str, int] | None = None) -> Op:
    return Op(0, time, process, type_, "acquire", "k", None, None, extra or {})


def test_a_late_worker_makes_a_late_invoke() -> None:
    ops = [
        op(10, 0, "invoke"),
        op(20, 1, "invoke"),
        op(30, 1, "ok", {"invoke": 21, "complete": 29}),
        op(99, 0, "ok", {"invoke": 90, "complete": 95}),
    ]
    tight, loose = tighten(ops)
    assert [(o.index, o.time, o.process, o.type) for o in tight] == [
        (0, 21, 1, "invoke"), (1, 29, 1, "ok"), (2, 90, 0, "invoke"), (3, 95, 0, "ok"),
    ]  # fmt: skip
    assert loose == 0


def test_inconsistent_stamps_are_counted_and_not_used() -> None:
    ops = [op(10, 0, "invoke"), op(20, 0, "ok", {"invoke": 5, "complete": 15})]
    tight, loose = tighten(ops)
    assert [o.time for o in tight] == [10, 20]
    assert loose == 1


def test_operations_of_one_process_keep_their_order_at_equal_times() -> None:
    ops = [
        op(0, 0, "invoke"),
        op(9, 0, "ok", {"invoke": 3, "complete": 5}),
        op(9, 0, "invoke"),
        op(9, 0, "ok", {"invoke": 9, "complete": 9}),
    ]
    tight, _ = tighten(ops)
    assert [o.type for o in tight] == ["invoke", "ok", "invoke", "ok"]


def test_doing_it_twice_changes_nothing() -> None:
    ops = [op(10, 0, "invoke"), op(99, 0, "ok", {"invoke": 90, "complete": 95})]
    once, _ = tighten(ops)
    before = [(o.index, o.time) for o in once]
    twice, _ = tighten(once)
    assert [(o.index, o.time) for o in twice] == before


def test_an_operation_with_no_completion_keeps_the_time_of_sending() -> None:
    tight, _ = tighten([op(10, 0, "invoke")])
    assert tight[0].time == 10
