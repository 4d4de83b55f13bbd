"""Read/write lock: readers share, a writer is alone.  Exact, O(n log n).

    check(history.intervals())

The zones of the holds have a mode; a writer weighs as much as all holds together, a reader 1, and
one sweep (see ``sweep``) must never exceed the weight of a writer.  A *downgrade* leaves the writer
a reader from its call on, an *upgrade* makes the only reader a writer from its return on.

Traps.  "Alone" includes the caller's own read holds.  Mode: ``value.mode`` or the operation's name
(acquire-read, wlock ...); a plain acquire is the exclusive one.  What an owner does after an
unknown outcome, without hold ids, is left to the general engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from checkers.models.base import ACQUIRE, BUSY, LOCK_F, NOT_HELD, RELEASE, RENEW
from checkers.models.shared import DOWNGRADE, MODES, READ, RW_F, UPGRADE, WRITE
from checkers.monitors.holds import Hold, block, group, in_turn
from checkers.monitors.span import INF, Span, Verdict, judge, ms, sees, service, to_span
from checkers.monitors.sweep import Point, Step, at_one_instant, sweep
from harness.core.history import Interval


def check(intervals: Iterable[Interval]) -> Verdict:
    """Whether no writer ever met another holder."""
    keys: dict[str | None, list[Span]] = {}
    for op in intervals:
        f, mode = RW_F.get(op.invoke.f, (LOCK_F.get(op.invoke.f), None))
        span = None if f is None else to_span(op, f)
        if span is not None and (span.seen is None or sees(span)):
            said = span.value.get("mode")
            if isinstance(said, str):
                mode = MODES.get(said.lower(), mode)
            if span.f == ACQUIRE and mode is None:
                mode = WRITE
            span.value = {**span.value, "mode": mode}
            keys.setdefault(span.key, []).append(span)
    return judge("rwlock", keys, _one)


def _one(spans: list[Span], verdict: Verdict) -> None:
    if any(span.seen == BUSY for span in spans):
        verdict.doubt("busy answers", spans[0].key)
        spans = [span for span in spans if span.seen != BUSY]
    whole = sum(1 for span in spans if span.f == ACQUIRE) + 1
    steps: list[Step] = []
    points: list[Point] = []
    if all(span.hold is not None for span in spans):
        for number, hold in enumerate(group(spans, verdict)):
            _hold(hold, number, whole, steps, points, verdict)
    else:
        if any(span.hold is not None for span in spans):
            verdict.doubt("some operations have a hold id and some have none", spans[0].key)
        owners: dict[Any, list[Span]] = {}
        for span in spans:
            owners.setdefault(span.owner, []).append(span)
        for owner, ops in owners.items():
            _walk(owner, ops, whole, steps, verdict)
    if at_one_instant(steps, points):
        verdict.doubt("a hold was taken and given back at one instant", spans[0].key)
    over, crowded = sweep(steps, points, whole)
    for step, holding in over:
        _meeting(step, holding, verdict)
    for point in crowded:
        verdict.add(
            service(
                "no-free-instant",
                point.span.key,
                f"{point.span.who} was told at {ms(point.high)} that it had held "
                f"({_mode(point.weight)}), but since {ms(point.low)} there was no moment for it",
                [point.span.invoke, point.span.event],
                legal_if="the others had asked for their release by then",
            )
        )


def _mode(weight: int) -> str:
    return "shared" if weight == 1 else "exclusive"


def _meeting(step: Step, holding: list[Step], verdict: Verdict) -> None:
    others = [other for other in holding if other is not step]
    writers = [other for other in others if other.delta > 1]
    other = (writers or others or [step])[0]
    verdict.add(
        service(
            "reader-meets-writer" if step.delta == 1 or other.delta == 1 else "double-grant",
            step.span.key,
            f"{step.span.who} was granted ({_mode(step.delta)}) by {ms(step.at)} while "
            f"{other.span.who} surely held ({_mode(other.delta)}) since {ms(other.at)}",
            [other.span.event, step.span.event],
            legal_if=f"{other.span.who} had asked for its release by {ms(step.at)}",
        )
    )


def _hold(
    hold: Hold,
    number: int,
    whole: int,
    steps: list[Step],
    points: list[Point],
    verdict: Verdict,
) -> None:
    acquire = hold.acquire
    mode = None if acquire is None else acquire.value["mode"]
    key = (acquire or hold.rest[0]).key
    if any(span.f in (UPGRADE, DOWNGRADE) for span in hold.rest):
        _walk(number, [acquire, *hold.rest] if acquire else hold.rest, whole, steps, verdict)
        return
    if any(span.value["mode"] not in (None, mode) for span in hold.rest):
        verdict.doubt("a release names another mode than its acquire", key)
        return
    found = block(hold, verdict)
    if found is None:
        return
    weight = 1 if mode == READ else whole
    if found.a < found.b:
        steps.append(Step(found.a, weight, found.start, number))
        if found.b < INF:
            steps.append(Step(found.b, -weight, found.end or found.start, number))
    else:
        points.append(
            Point(found.b, found.a, weight, found.start, found.end or found.start, number)
        )


def _walk(holder: Any, ops: list[Span], whole: int, steps: list[Step], verdict: Verdict) -> None:
    """One holder's operations in order: ``reads`` read holds, or ``writes``."""
    if not in_turn(ops, verdict):
        return
    reads, writes = 0, False
    for span in ops:
        mode = span.value["mode"]
        mine = (writes and mode != READ) or (reads > 0 and mode != WRITE)
        if span.f == ACQUIRE:
            if span.ok:
                wants = WRITE if mode == WRITE else READ
                steps.append(Step(span.ret, whole if wants == WRITE else 1, span, holder))
                if writes or (wants == WRITE and reads):
                    _wrong(span, "it held the lock itself", verdict)
                    return
                reads, writes = (reads, True) if wants == WRITE else (reads + 1, writes)
        elif span.seen == NOT_HELD:
            if mine:
                _wrong(span, "it held the lock", verdict)
        elif span.f == UPGRADE:
            if span.ok and not (reads == 1 and not writes):
                _wrong(span, "it was not the only reader", verdict)
                return
            if span.ok:
                reads, writes = 0, True
                steps.append(Step(span.ret, whole - 1, span, holder))
        elif span.f == DOWNGRADE:
            if writes:
                reads, writes = 1, False
                steps.append(Step(span.call, 1 - whole, span, holder))
            elif span.ok:
                _wrong(span, "it was not the writer", verdict)
                return
        elif not mine:
            if span.ok:
                _wrong(span, "it did not hold the lock", verdict)
                return
        elif span.f != RENEW and span.f == RELEASE:
            steps.append(Step(span.call, -whole if writes else -1, span, holder))
            reads, writes = (reads, False) if writes else (reads - 1, False)


def _wrong(span: Span, says: str, verdict: Verdict) -> None:
    verdict.add(
        service(
            "lost-lock" if span.seen else "confirmed-without-grant",
            span.key,
            f"{span.who}: {span.f} answered {span.seen or 'ok'} at {ms(span.ret)}, but {says}",
            [span.invoke, span.event],
            legal_if="the answer had been the other one",
        )
    )
