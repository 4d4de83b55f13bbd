"""The general checker: any model, any history, three answers.

    check(history.intervals(), Mutex())  ->  EngineResult(valid=Valid.FALSE, strategy="wgl", ...)

The history falls apart into independent objects (``Model.partition``; linearizability is local).
Each is searched depth first with a small allowance, then breadth first, then both with all that is
left: good histories are the depth-first search's, violations the other's, and nobody knows before
which it is.  Cheap objects come first: all get a small allowance before any gets a large one, so
that one hard object cannot hide a violation in another.

A violation is final; "no violation found in time" is UNKNOWN and says which limit was hit.  A
malformed operation (a model's UserError) is UNKNOWN too: it is not judged.

Trap: ``memory_bytes`` is an estimate of what the search keeps, not of the whole process.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from checkers.engine import frontier, wgl
from checkers.engine.budget import Budget, Clock
from checkers.engine.seen import Stuck
from checkers.engine.work import Work
from checkers.models.base import Model, determined
from harness.core.errors import UserError
from harness.core.history import Interval
from harness.core.limits import ENGINE_BUDGET_S, ENGINE_ENDS_MAX, ENGINE_MEMORY_BYTES
from harness.core.result import Valid

NAMES = ("wgl", "frontier")
STRATEGIES = (wgl, frontier)
Allowance = tuple[int, int]  # configurations: so many, and so many per operation
NO_LIMIT = (1 << 60, 0)
# What each object gets, round by round: (depth first, breadth first).
ROUNDS: tuple[tuple[Allowance, Allowance], ...] = (
    ((300, 0), (0, 0)),
    ((2_000, 4), (2_000, 4)),
    (NO_LIMIT, NO_LIMIT),
)


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """Where a violation shows.

    blocked: the operation whose completion no legal order reaches.  open: the operations that were
    under way, or of unknown outcome, at that moment and not done in the deepest order.  prefix: the
    last operations done in that order.  states: what the state could be there.  All bounded.
    """

    blocked: Interval
    open: tuple[Interval, ...] = ()
    prefix: tuple[Interval, ...] = ()
    states: tuple[str, ...] = ()
    returned: int = 0
    """How many operations had completed before ``blocked``."""


class EngineResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer.  ``key``: the object that decided it.  ``strategy``: wgl | frontier | none."""

    valid: Valid
    strategy: str
    why: str
    witness: Witness | None = None
    key: Any = None
    configurations: int = 0
    seconds: float = 0.0
    objects: int = 0


def check(
    intervals: Iterable[Interval],
    model: Model,
    *,
    budget_s: float = ENGINE_BUDGET_S,
    memory_bytes: int = ENGINE_MEMORY_BYTES,
    clock: Clock = time.monotonic,
) -> EngineResult:
    """Whether the history is linearizable for ``model``; UNKNOWN at a limit, never an exception."""
    run = _Run(determined(model), budget_s=budget_s, memory_bytes=memory_bytes, clock=clock)
    try:
        return run.judge(partition(intervals, model))
    except UserError as error:
        return run.result(Valid.UNKNOWN, "none", f"malformed: {error}")
    except MemoryError:
        return run.result(Valid.UNKNOWN, "none", "the process ran out of memory")


def partition(intervals: Iterable[Interval], model: Model) -> dict[Hashable, list[Interval]]:
    """The operations of each independent object, in their order."""
    parts: dict[Hashable, list[Interval]] = defaultdict(list)
    if type(model).partition is Model.partition:
        for op in intervals:
            parts[op.invoke.key].append(op)
    else:
        for op in intervals:
            parts[model.partition(op)].append(op)
    return parts


class _Run:
    """One call of ``check``: the limits it shares among objects, and what it counted."""

    def __init__(self, model: Model, *, budget_s: float, memory_bytes: int, clock: Clock) -> None:
        self.model, self.memory_bytes, self.clock = model, memory_bytes, clock
        self.began_s = clock()
        self.ends_s = self.began_s + budget_s
        self.nodes = self.objects = 0

    def result(self, valid: Valid, strategy: str, why: str, **more: Any) -> EngineResult:
        return EngineResult(
            valid=valid,
            strategy=strategy,
            why=why,
            configurations=self.nodes,
            seconds=self.clock() - self.began_s,
            objects=self.objects,
            **more,
        )

    def judge(self, parts: dict[Hashable, list[Interval]]) -> EngineResult:
        self.objects = len(parts)
        left: dict[Hashable, Work | None] = dict.fromkeys(parts)
        last, why = "none", ""
        for allowances in ROUNDS if len(parts) > 1 else ROUNDS[1:]:
            unsure: dict[Hashable, Work | None] = {}
            for place, (key, known) in enumerate(left.items()):
                work = known or Work(parts[key], self.model)
                share_s = (self.ends_s - self.clock()) / (len(left) - place)
                valid, strategy, stuck = self._object(work, allowances, share_s)
                if valid is False:
                    said = f"no legal order of the operations on {key!r}"
                    return self.result(
                        Valid.FALSE, strategy, said, key=key, witness=_witness(work, stuck)
                    )
                if valid is None:
                    unsure[key], why = work, strategy
                else:
                    last = strategy
            left = unsure
            if not left:
                return self.result(Valid.TRUE, last, _good(self.objects))
        names = ", ".join(repr(key) for key in list(left)[:3])
        said = f"no verdict on {len(left)} of {self.objects} objects ({names}): {why}"
        return self.result(Valid.UNKNOWN, "none", said, key=next(iter(left)))

    def _object(
        self, work: Work, allowances: tuple[Allowance, Allowance], share_s: float
    ) -> tuple[bool | None, str, Stuck]:
        """The verdict on one object, by both strategies; if None, the string says which limit."""
        reason = ""
        stuck = Stuck()
        for name, strategy, (base, per_op) in zip(NAMES, STRATEGIES, allowances, strict=True):
            nodes_max = int(base + per_op * work.count)
            if not nodes_max:
                continue
            budget = Budget(
                seconds=share_s / 2,
                memory_bytes=self.memory_bytes,
                nodes_max=nodes_max,
                clock=self.clock,
            )
            valid, stuck = strategy.search(work, budget)
            self.nodes += stuck.nodes
            if valid is not None:
                return valid, name, stuck
            reason = budget.reason
        return None, f"limit of {reason} reached", stuck


def _good(objects: int) -> str:
    return f"a legal order exists for each of {objects} objects" if objects else "nothing to check"


def _witness(work: Work, stuck: Stuck) -> Witness:
    """What the report needs of the farthest point: bounded, whatever the history's length."""
    ops = work.ops
    r = stuck.r
    _, mask, used, path = stuck.ends[0]
    open_ops = [i for i in work.choices[r] if i != work.seq[r] and not mask & work.bit[i]]
    before = work.infos_before[r]
    open_ops += [work.infos[place] for place in range(before) if not used >> place & 1][
        -ENGINE_ENDS_MAX:
    ]
    done = [i if i >= 0 else work.infos[~i] for i in path]
    if not done:
        done = work.seq[max(0, r - ENGINE_ENDS_MAX) : r]
    states = {repr(work.states[end[0]]) for end in stuck.ends}
    return Witness(
        blocked=ops[work.seq[r]],
        open=tuple(ops[i] for i in open_ops[:ENGINE_ENDS_MAX]),
        prefix=tuple(ops[i] for i in done),
        states=tuple(sorted(states)),
        returned=r,
    )
