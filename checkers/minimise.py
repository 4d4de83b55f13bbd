"""The smallest set of operations that still proves a violation.

An operation is not simply deleted: without its acquire, any release would be "illegal", and the set
left over would prove nothing.  It is *weakened* instead: it may or may not have happened, at any
moment of its interval, with any result.  If no legal order exists even so, the operations that are
left prove the violation by themselves, whatever the others did:

    smallest(ops, Mutex(), hint=[...])     # two acquires and nothing else, of a thousand operations

Steps, each one checked by the general engine: (1) only the holders named in the hint, where that is
sound; (2) delta debugging (Zeller and Hildebrandt 2002): drop halves, quarters ... single ones;
(3) all smaller subsets of what is near, so that the result is the smallest and not just minimal.
Everything is deterministic.

Traps: a *busy* answer needs somebody who holds, so holders cannot be left out (step 1) where one
was recorded; an operation that the engine cannot judge in its share of time is kept.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Hashable, Iterable, Sequence

import msgspec

from checkers.engine import check
from checkers.engine.budget import Clock
from checkers.models.base import BUSY, Model, hold_of, observed, owner_of
from harness.core.history import Interval, Op, Type
from harness.core.limits import EXPLAIN_POOL_MAX, EXPLAIN_SUBSETS_MAX
from harness.core.result import Valid

# Locks: leaving out one holder altogether never makes an operation of another one illegal.
SEPARABLE = frozenset({"mutex", "reentrant", "fenced", "semaphore", "rwlock", "lease"})
TRY_S_MAX = 2.0  # one question to the engine


class Minimal(msgspec.Struct, frozen=True, kw_only=True):
    """``ops``: the set, in order of invocation.  ``rest``: what was still regarded, weakened.

    smallest: no smaller set among the ``pool`` nearest operations proves it; False if time ran out.
    """

    ops: tuple[Interval, ...]
    rest: tuple[Interval, ...]
    smallest: bool
    questions: int


def weaken(op: Interval) -> Interval | None:
    """The operation as one that may have happened within its interval, or None if that is empty."""
    done = op.complete
    if done is None or done.type == Type.INFO:
        return op
    if done.type == Type.FAIL:
        return None
    open_end = Op(
        done.index,
        done.time,
        done.process,
        Type.INFO,
        done.f,
        done.key,
        done.value,
        None,
        {"until_ns": done.time},
    )
    return Interval(op.invoke, open_end)


def identity(op: Interval, model: Model) -> Hashable:
    """Whose operation it is: the hold, else the owner (a reentrant lock knows owners only)."""
    hold = hold_of(op)
    return owner_of(op) if hold is None or model.name == "reentrant" else ("hold", hold)


class Minimiser:
    """Answers "does this set still prove it" for one list of operations, within a budget."""

    def __init__(
        self, ops: Sequence[Interval], model: Model, *, budget_s: float, clock: Clock
    ) -> None:
        self.ops = list(ops)
        self.model = model
        self.clock = clock
        self.ends_s = clock() + budget_s
        self.questions = 0
        self._weak = [weaken(op) for op in self.ops]

    def left_s(self) -> float:
        return self.ends_s - self.clock()

    def fails(self, kept: Iterable[int]) -> bool:
        """Whether there is no legal order with only ``kept`` required."""
        whole = set(kept)
        history = [
            op
            for i in range(len(self.ops))
            if (op := self.ops[i] if i in whole else self._weak[i]) is not None
        ]
        self.questions += 1
        budget_s = max(0.0, min(TRY_S_MAX, self.left_s()))
        return check(history, self.model, budget_s=budget_s).valid == Valid.FALSE

    def delta(self, kept: list[int]) -> list[int]:
        """Drops chunks, halving their size, until no single operation can be dropped."""
        size = max(1, len(kept) // 2)
        while self.left_s() > 0:
            dropped = False
            start = 0
            while start < len(kept) and self.left_s() > 0:
                fewer = kept[:start] + kept[start + size :]
                if fewer and self.fails(fewer):
                    kept, dropped = fewer, True
                else:
                    start += size
            if size == 1 and not dropped:
                break
            size = max(1, size // 2) if not dropped or size > len(kept) // 2 else size
        return kept

    def smaller(self, kept: list[int], pool: Sequence[int]) -> tuple[list[int], bool]:
        """A smallest subset of ``pool`` that fails, if smaller than ``kept``; and if proven."""
        asked = 0
        for count in range(1, len(kept)):
            for subset in itertools.combinations(pool, count):
                asked += 1
                if asked > EXPLAIN_SUBSETS_MAX or self.left_s() <= 0:
                    return kept, False
                if self.fails(subset):
                    return list(subset), True
        return kept, True


def smallest(
    ops: Sequence[Interval],
    model: Model,
    *,
    hint: Sequence[Interval] = (),
    budget_s: float = 5.0,
    clock: Clock = time.monotonic,
) -> Minimal | None:
    """The smallest proving set among ``ops`` (one object's), or None if they prove nothing.

    ``hint``: operations that are probably part of it, as the engine's witness.
    """
    ops = _narrowed(ops, model, hint, budget_s)
    run = Minimiser(ops, model, budget_s=budget_s, clock=clock)
    required = [i for i, op in enumerate(ops) if op.outcome != Type.INFO]
    hinted = [i for i in required if ops[i] in hint]
    kept = hinted if hinted and run.fails(hinted) else required
    if kept is required and not run.fails(required):
        return None
    kept = run.delta(kept)
    pool = _near(ops, kept, required)
    kept, proven = run.smaller(kept, pool)
    chosen = set(kept)
    return Minimal(
        ops=tuple(ops[i] for i in sorted(chosen)),
        rest=tuple(op for i, op in enumerate(ops) if i not in chosen),
        smallest=proven,
        questions=run.questions,
    )


def _narrowed(
    ops: Sequence[Interval], model: Model, hint: Sequence[Interval], budget_s: float
) -> list[Interval]:
    """Only the operations of the hint's holders, if leaving out the others is sound and fails."""
    if model.name not in SEPARABLE or any(observed(op) == BUSY for op in ops):
        return list(ops)
    with_hold = sum(hold_of(op) is not None for op in ops)
    if with_hold not in (0, len(ops)) and model.name != "reentrant":
        return list(ops)  # some releases may match by owner
    named = {identity(op, model) for op in hint}
    fewer = [op for op in ops if identity(op, model) in named]
    if fewer and check(fewer, model, budget_s=budget_s).valid == Valid.FALSE:
        return fewer
    return list(ops)


def _near(ops: Sequence[Interval], kept: Sequence[int], required: Sequence[int]) -> list[int]:
    """``kept`` and the required operations around them, at most EXPLAIN_POOL_MAX."""
    middle = sum(kept) / len(kept)
    others = sorted((i for i in required if i not in set(kept)), key=lambda i: abs(i - middle))
    return sorted([*kept, *others[: max(0, EXPLAIN_POOL_MAX - len(kept))]])
