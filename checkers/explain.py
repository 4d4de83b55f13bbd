"""Why a history is not legal, in words and as a picture, from the fewest operations that show it.

    told = explain(history, Mutex(), check(history.intervals(), Mutex()))
    print(told.text())

        double-grant (service): worker 1 was granted k0 while worker 0 still held it ...
        worker 0  [==A==]                 [==b==]
        worker 1            [==C==]
        ...
        It would be legal if C had been answered at 7 ns or later (it was at 5 ns).

``ops`` is the smallest set that proves the violation whatever all other operations did (see
``minimise``); ``context`` are operations worth seeing beside it, such as the release that came too
late.  What would have made it legal is not guessed: each change that is offered was put to the
engine.  For UNKNOWN it says what is missing for a verdict.

Traps: a violation has one explanation here, even if the history has many; the engine's verdict is
about the service or the resource, never about what clients believed (that is another checker).
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Sequence

import msgspec

from checkers.engine import EngineResult, check, partition
from checkers.engine.budget import Clock
from checkers.explain_words import Story, tell
from checkers.minimise import SEPARABLE, Minimal, identity, smallest, weaken
from checkers.models.base import LOCK_F, Model, hold_of, integer
from checkers.picture import COLUMNS, names, picture, show, unit
from harness.core.history import History, Interval, Type
from harness.core.limits import EXPLAIN_BUDGET_S, EXPLAIN_OPS_MAX
from harness.core.result import Result, Side, Valid

CONTEXT_MAX = 4
LATER_MAX = 40  # later times that are tried for "would have been legal"


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """``kind``: short slug.  ``smallest``: no smaller proof exists among the operations nearby."""

    valid: Valid
    says: str
    kind: str = ""
    ops: tuple[Interval, ...] = ()
    context: tuple[Interval, ...] = ()
    picture: str = ""
    side: Side | None = None
    overlap_ns: int | None = None
    legal_if: str | None = None
    smallest: bool = False

    def text(self) -> str:
        """All of it, no line longer than 100 columns."""
        parts = [textwrap.fill(self.says, COLUMNS)]
        if self.picture:
            parts.append(self.picture)
        if self.legal_if:
            parts.append(textwrap.fill(f"It would be legal {self.legal_if}.", COLUMNS))
        return "\n\n".join(parts)


def explain(
    history: History | Iterable[Interval],
    model: Model,
    result: EngineResult | Result | None = None,
    *,
    budget_s: float = EXPLAIN_BUDGET_S,
    clock: Clock = time.monotonic,
) -> Explanation:
    """Explains ``result`` (of ``check`` or of a monitor); without one the engine is asked first."""
    intervals = history.intervals() if isinstance(history, History) else list(history)
    if result is None:
        result = check(intervals, model, budget_s=budget_s, clock=clock)
    if result.valid == Valid.TRUE:
        return Explanation(valid=Valid.TRUE, says="Nothing to explain: a legal order exists.")
    if result.valid == Valid.UNKNOWN:
        return Explanation(valid=Valid.UNKNOWN, says=missing(intervals, model, result))
    part, found = _failing_part(intervals, model, result, budget_s, clock)
    if found is None or found.witness is None:
        said = result.why if isinstance(result, EngineResult) else result.says
        note = "the general checker did not reproduce it in its time, so nothing was minimised"
        return Explanation(valid=Valid.FALSE, says=f"{said} ({note})", kind="not-minimised")
    cut = _until(part, found.witness.blocked)
    hint = (found.witness.blocked, *found.witness.open, *found.witness.prefix)
    least = smallest(cut, model, hint=hint, budget_s=budget_s, clock=clock)
    if least is None:  # the engine saw ahead: what proves it may have been called later
        least = smallest(part[-EXPLAIN_OPS_MAX:], model, hint=hint, budget_s=budget_s, clock=clock)
    if least is None:
        least = Minimal(ops=hint, rest=(), smallest=False, questions=0)
    return _explained(least, part, model)


def _failing_part(
    intervals: list[Interval],
    model: Model,
    result: EngineResult | Result,
    budget_s: float,
    clock: Clock,
) -> tuple[list[Interval], EngineResult | None]:
    """The operations of the object that fails, and the engine's result on them."""
    parts = partition(intervals, model)
    if isinstance(result, EngineResult):
        return parts.get(result.key, intervals), result
    wanted = {anomaly.key for anomaly in result.anomalies}
    for part in [parts[key] for key in sorted(parts, key=lambda key: key not in wanted)]:
        found = check(part, model, budget_s=budget_s, clock=clock)
        if found.valid == Valid.FALSE:
            return part, found
    return intervals, None


def _until(part: Sequence[Interval], blocked: Interval) -> list[Interval]:
    """What was called before the violation shows; what had not returned by then is unknown."""
    end_ns = blocked.return_ns
    if end_ns is None:
        return list(part)
    cut: list[Interval] = []
    for op in part:
        if op.call_ns > end_ns:
            continue
        late = op.return_ns is not None and op.return_ns > end_ns
        softer = weaken(op) if late else op
        if softer is not None:
            cut.append(softer)
    return cut[-EXPLAIN_OPS_MAX:]


def _explained(least: Minimal, part: Sequence[Interval], model: Model) -> Explanation:
    ops = list(least.ops)
    scope = _scope(ops, part, model)
    context = _context(ops, scope, model)
    shown = sorted([*ops, *context], key=lambda op: (op.call_ns, op.invoke.index))
    letters = dict(zip(map(_id, shown), names(shown, context), strict=True))
    story = tell(Story(ops, scope, letters, model))
    return Explanation(
        valid=Valid.FALSE,
        says=story.says,
        kind=story.kind,
        ops=tuple(ops),
        context=tuple(context),
        picture=picture(shown, context=context),
        side=story.side,
        overlap_ns=story.overlap_ns,
        legal_if=_legal_if(ops, scope, letters, model),
        smallest=least.smallest,
    )


def _id(op: Interval) -> int:
    return op.invoke.index


def _scope(ops: Sequence[Interval], part: Sequence[Interval], model: Model) -> list[Interval]:
    """What else to look at: the holders' other operations, or what is near in time."""
    if model.name in SEPARABLE:
        named = {identity(op, model) for op in ops}
        near = [op for op in part if identity(op, model) in named]
    else:
        first = min(op.call_ns for op in ops)
        last = max(op.return_ns or op.call_ns for op in ops)
        near = [
            op
            for op in part
            if op.call_ns <= last + (last - first)
            and (op.return_ns is None or op.return_ns >= first)
        ]
    return near[: EXPLAIN_OPS_MAX // 10]


def _context(ops: Sequence[Interval], scope: Sequence[Interval], model: Model) -> list[Interval]:
    """The grants and the first releases of the holders, as far as they are not proof already."""
    mine = set(map(_id, ops))
    if model.name not in SEPARABLE:
        return [op for op in scope if _id(op) not in mine and _bears(op, ops)][:CONTEXT_MAX]
    context: list[Interval] = []
    for who in dict.fromkeys(identity(op, model) for op in ops):
        theirs = [op for op in scope if identity(op, model) == who]
        for wanted in ("acquire", "release"):
            found = [op for op in theirs if LOCK_F.get(op.invoke.f) == wanted]
            if found and not any(_id(op) in mine for op in found):
                context.append(found[0])
    return context[:CONTEXT_MAX]


def _bears(op: Interval, ops: Sequence[Interval]) -> bool:
    """Whether a write has to do with ``ops``: it wrote what they saw, or has a greater token."""
    token = integer(op.field("token"))
    if token is not None:
        tokens = [found for other in ops if (found := integer(other.field("token"))) is not None]
        return op.outcome == Type.INFO and bool(tokens) and token > min(tokens)
    if op.invoke.f not in ("write", "put", "cas"):
        return False
    seen = [other.complete.value for other in ops if other.complete is not None]
    value = op.invoke.value
    return (value[-1] if op.invoke.f == "cas" and isinstance(value, list) else value) in seen


def _legal_if(
    ops: Sequence[Interval], scope: Sequence[Interval], letters: dict[int, str], model: Model
) -> str:
    """A change that the engine confirms: a later answer, else an operation that didn't happen."""
    in_unit = unit(ops)
    mine = set(map(_id, ops))
    rest = [soft for op in scope if _id(op) not in mine and (soft := weaken(op)) is not None]
    for op in sorted(ops, key=lambda op: -(op.return_ns or 0)):
        others = [*rest, *(other for other in ops if other is not op)]
        following = [
            other.call_ns
            for other in scope
            if other.invoke.process == op.invoke.process and other.invoke.index > _id(op)
        ]
        for at in _later(op, scope, model):
            if at > min(following, default=at):
                break  # its process had gone on by then
            if check([*others, _answered(op, at)], model, budget_s=1.0).valid == Valid.TRUE:
                was = show(op.return_ns or 0, in_unit)
                return (
                    f"if {letters[_id(op)]} had been answered at {show(at, in_unit)} {in_unit} "
                    f"or later (it was at {was} {in_unit})"
                )
    last = max(ops, key=lambda op: op.return_ns or 0)
    if len(ops) == 1 or last.outcome == Type.FAIL:
        return f"if {letters[_id(last)]} had got another answer"
    return f"if {letters[_id(last)]} had not taken effect"


def _later(op: Interval, scope: Sequence[Interval], model: Model) -> list[int]:
    """Times after the answer of ``op`` at which something else begins, ends or runs out."""
    end_ns = op.return_ns
    if end_ns is None:
        return []
    times = {at for other in scope for at in (other.call_ns, other.return_ns) if at is not None}
    ttl_default = getattr(model, "ttl_ns", None)
    for other in scope:
        ttl_ns = integer(other.field("ttl_ns")) or ttl_default
        if ttl_ns is not None:
            times.add(other.call_ns + ttl_ns)
    return sorted(at for at in times if at > end_ns)[:LATER_MAX]


def _answered(op: Interval, at_ns: int) -> Interval:
    done = op.complete
    if done is None:
        return op
    return Interval(op.invoke, msgspec.structs.replace(done, time=at_ns))


def missing(intervals: Sequence[Interval], model: Model, result: EngineResult | Result) -> str:
    """What stands between this history and a verdict."""
    why = result.why if isinstance(result, EngineResult) else result.says
    unknown = sum(op.outcome == Type.INFO for op in intervals)
    locks = [op for op in intervals if op.invoke.f in LOCK_F]
    anonymous = sum(hold_of(op) is None for op in locks)
    parts = [f"No verdict: {why}."]
    if not intervals:
        parts.append("The history has no client operation, so there is nothing to judge.")
    if unknown:
        parts.append(
            f"{unknown} of {len(intervals)} operations have no known outcome; each one may have "
            "happened at any later time."
        )
    if anonymous:
        parts.append(
            f"{anonymous} of {len(locks)} lock operations carry no hold id (value.hold): with a "
            "fresh one per acquire attempt the monitors decide without a search."
        )
    if "limit of time" in why:
        parts.append("More time may decide it; so may fewer concurrent clients or a shorter run.")
    elif "limit of memory" in why:
        parts.append("More memory may decide it; so may splitting the history by key or by time.")
    elif "malformed" in why:
        parts.append("The operation named must be corrected in the history first.")
    return " ".join(parts)
