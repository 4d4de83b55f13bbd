"""A legal order of the operations, or the longest beginning that has one: to be looked at.

    for key, steps in legal_orders(history, "mutex", {}).items(): ...

The engine answers yes or no; a viewer wants the order itself.  The depth-first search leaves one
behind when it succeeds.  When it fails, everything up to the return that no order can pass has a
legal order (what was still under way there counts as of unknown outcome), and that is shown: the
operation missing in it is the one to look at.

Trap: what the search left is replayed through the model step by step before it is believed; an
order that does not replay is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from checkers.engine import partition, wgl
from checkers.engine.budget import Budget
from checkers.engine.work import Work
from checkers.models import make
from checkers.models.base import Model, determined
from harness.core.errors import UserError
from harness.core.history import History, Interval
from harness.core.limits import ENGINE_MEMORY_BYTES, ORDER_BUDGET_S, ORDER_OPS_MAX

_STATE_LENGTH_MAX = 80

Step = tuple[int, str]  # position in history.intervals(), the state after it in words


def legal_orders(
    history: History, model: str, options: Mapping[str, Any]
) -> dict[str | None, list[list[Step]]]:
    """For each key a list with one order (position, state), or none if it took too long."""
    intervals = history.intervals()
    places = {op.invoke.index: place for place, op in enumerate(intervals)}
    found: dict[str | None, list[list[Step]]] = {}
    rules = make(model, **options)
    for part in partition(intervals, rules).values():
        if len(part) > ORDER_OPS_MAX:
            continue
        try:
            order = _order(part, determined(rules))
        except UserError:
            continue  # malformed for this model: nothing to draw
        if order:
            steps = [(places[op.invoke.index], state) for op, state in order]
            found.setdefault(part[0].invoke.key, []).append(steps)
    return found


def _order(ops: Sequence[Interval], model: Model) -> list[tuple[Interval, str]]:
    valid, path, blocked = _search(ops, model)
    if valid is False and blocked is not None:
        _, path, _ = _search(_until(ops, blocked), model)
    return _replayed(path, model)


def _search(
    ops: Sequence[Interval], model: Model
) -> tuple[bool | None, list[Interval], Interval | None]:
    """(legal, the operations in the order found, the operation whose return was not passed)."""
    work = Work(list(ops), model)
    budget = Budget(seconds=ORDER_BUDGET_S, memory_bytes=ENGINE_MEMORY_BYTES, nodes_max=1 << 62)
    valid, stuck = wgl.search(work, budget)
    if valid:
        return True, [work.ops[i if i >= 0 else work.infos[~i]] for i in stuck.path], None
    return valid, [], work.ops[work.seq[stuck.r]] if 0 <= stuck.r < len(work.seq) else None


def _until(ops: Sequence[Interval], blocked: Interval) -> list[Interval]:
    """What was called before ``blocked`` returned; what had not returned by then is open."""
    end_ns = blocked.return_ns
    if end_ns is None:
        return []
    return [
        op if op.return_ns is not None and op.return_ns < end_ns else Interval(op.invoke, None)
        for op in ops
        if op.call_ns <= end_ns and op.invoke.index != blocked.invoke.index
    ]


def _replayed(path: Sequence[Interval], model: Model) -> list[tuple[Interval, str]]:
    state = model.init
    found = []
    for op in path:
        state = model.step(state, model.prepare(op))
        if state is None:
            return []
        found.append((op, repr(state)[:_STATE_LENGTH_MAX]))
    return found
