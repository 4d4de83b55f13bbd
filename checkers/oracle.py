"""The oracle: brute force, so plain that it can be believed, for histories of a few operations.

Every other checker of this room is clever in some way; this one is not, and shares no code with
them but the models.  It tries every order of the operations that respects real time, and for each
operation of unknown outcome every moment at which it could take effect, and never:

    linearizable(history.intervals(), Mutex())      # True or False, nothing else
    exclusive(history.intervals(), signals, ttl_ns=10, enforced=True)

The rules are those the documentation publishes.  ``a`` must come before ``b`` if ``a`` completed
(``ok``, or a refusal that observed the state) before ``b`` was invoked; equal times are concurrent,
except that operations of one process keep the order of their lines.  An operation of unknown
outcome must come after what precedes it, may be taken at any later point (up to ``until_ns`` where
the history knows one) and need not be taken at all.

The one shortcut is trivially safe: what can still be done depends only on the state and on the set
of operations done, so a pair of those that led nowhere is not walked twice.

Traps: the cost is exponential (10 operations are thousands of steps, 20 may be millions), hence
the limit, which raises; recursion is fine here because depth is bounded by that limit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from checkers.models.base import ACQUIRE, LOCK_F, RELEASE, RENEW, Model, determined, until_ns
from harness.core.errors import UserError
from harness.core.history import Interval, Op, Type
from harness.core.limits import ORACLE_OPS_MAX


def linearizable(intervals: Iterable[Interval], model: Model) -> bool:
    """True iff some order of the operations is legal for ``model``, separately for each object.

    UserError if one object has more than ORACLE_OPS_MAX operations that say something.
    """
    model = determined(model)
    objects: dict[Hashable, list[tuple[Interval, Any]]] = {}
    for op in intervals:
        prepared = model.prepare(op)
        if prepared is not None:
            objects.setdefault(model.partition(op), []).append((op, prepared))
    return all(_orderable(ops, model) for ops in objects.values())


def precedes(a: Interval, b: Interval) -> bool:
    """True iff ``a`` must come before ``b`` in every order."""
    end_ns = a.return_ns
    if end_ns is None or a is b:
        return False
    if end_ns < b.call_ns:
        return True
    return (
        end_ns == b.call_ns
        and a.invoke.process == b.invoke.process
        and a.complete is not None
        and a.complete.index < b.invoke.index
    )


def _orderable(ops: list[tuple[Interval, Any]], model: Model) -> bool:
    count = len(ops)
    if count > ORACLE_OPS_MAX:
        raise UserError(
            f"the oracle got {count} operations on one object, its limit is {ORACLE_OPS_MAX}; "
            "use checkers.engine.check for more"
        )
    required = [op.outcome != Type.INFO for op, _ in ops]
    before = [
        {j for j in range(count) if j != i and precedes(ops[j][0], ops[i][0])} for i in range(count)
    ]
    too_late = [_closes(ops, i) for i in range(count)]
    walked: set[tuple[frozenset[int], Any]] = set()

    def search(done: frozenset[int], state: Any) -> bool:
        if all(i in done or not required[i] for i in range(count)):
            return True
        if (done, state) in walked:
            return False
        walked.add((done, state))
        for i in range(count):
            if i in done or not before[i] <= done or too_late[i] & done:
                continue
            after = model.step(state, ops[i][1])
            if after is not None and search(done | {i}, after):
                return True
        return False

    return search(frozenset(), model.init)


def _closes(ops: list[tuple[Interval, Any]], i: int) -> set[int]:
    """The operations after which ``i`` cannot take effect any more, since it knows an end."""
    op = ops[i][0]
    end_ns = until_ns(op) if op.outcome == Type.INFO else None
    if end_ns is None:
        return set()
    return {j for j, (other, _) in enumerate(ops) if other.call_ns > end_ns}


def exclusive(
    intervals: Iterable[Interval],
    signals: Iterable[Op] = (),
    *,
    ttl_ns: int | None = None,
    enforced: bool = False,
) -> bool:
    """True iff at no instant two processes believed to hold one key: looks at each instant.

    signals: events ``lost``, about a hold or else a process.  An instant stands between two ns;
    belief only changes at whole ns, so that is all of them.  The limit of ns is the caller's.
    """
    ops, told = list(intervals), list(signals)
    acquires = [op for op in ops if LOCK_F.get(op.invoke.f) == ACQUIRE and op.outcome == Type.OK]
    events = [event for op in ops for event in (op.invoke, op.complete) if event is not None]
    end_ns = max((event.time for event in [*events, *told]), default=0)
    for instant in range(end_ns):  # stands for instant + 0.5
        sure: dict[Hashable, set[Hashable]] = {}
        for acquire in acquires:
            own = [op for op in ops if _of_hold(op, acquire)]
            if _believes(acquire, own, told, instant, ttl_ns if enforced else None, enforced):
                sure.setdefault(acquire.invoke.key, set()).add(acquire.invoke.process)
        if any(len(processes) > 1 for processes in sure.values()):
            return False
    return True


def _of_hold(op: Interval, acquire: Interval) -> bool:
    """Whether ``op`` is a later one of the hold that ``acquire`` began."""
    hold = acquire.field("hold")
    same = op.field("hold") == hold and (hold is not None or _by(op) == _by(acquire))
    return same and op.invoke.key == acquire.invoke.key and op.invoke.index > acquire.invoke.index


def _by(op: Interval) -> int | str:
    return op.invoke.process


def _believes(
    acquire: Interval,
    own: list[Interval],
    told: list[Op],
    instant: int,
    ttl_ns: int | None,
    enforced: bool,
) -> bool:
    """Whether its client believes, right after ``instant``: lives through all ns up to it."""
    granted_ns: int = acquire.return_ns  # type: ignore[assignment]  # it was answered ok
    lasts = acquire.field("ttl_ns") or ttl_ns
    deadline = acquire.call_ns + lasts if enforced and lasts else None
    hold, process = acquire.field("hold"), acquire.invoke.process
    if instant < granted_ns:
        return False
    for now in range(acquire.call_ns, instant + 1):
        if deadline is not None and now >= deadline:
            return False
        for op in own:
            f, done = LOCK_F.get(op.invoke.f), op.complete
            if f == RELEASE and op.call_ns <= now:
                return False
            if f == RENEW and done is not None and done.type == Type.FAIL and done.time <= now:
                return False
            if f == RENEW and op.return_ns == now and op.outcome == Type.OK and enforced:
                lasts = op.field("ttl_ns") or acquire.field("ttl_ns") or ttl_ns
                deadline = op.call_ns + lasts if lasts else None
        for signal in told:
            about = signal.value if isinstance(signal.value, dict) else {}
            named, whose = about.get("hold"), about.get("process", signal.process)
            if granted_ns <= signal.time == now and (
                named == hold if named is not None else whose == process
            ):
                return False
    return True
