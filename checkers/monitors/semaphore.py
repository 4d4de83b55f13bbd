"""Semaphore with k permits: exact, O(n log n), where every search fails by concurrency alone.

    check(history.intervals(), k=3)                   permits have owners (or hold ids)
    check(history.intervals(), k=3, anonymous=True)   anybody may give a permit back

Owned permits: a hold surely has its permits from the return of its acquire to the call of its
release, and one sweep must never count more than k (see ``sweep``).  An acquire of unknown outcome
whose release was confirmed needs one instant with room.  Permits per operation: ``value.permits``,
by default 1 (a release that names a hold gives back all of it).

Anonymous unit permits, both bounds 0 <= used <= k: lazy earliest-deadline greedy.  Nothing is done
before it is forced; to make room, the open operation of the other kind with the earliest deadline
is done first.  Operations of unknown outcome have no deadline.

Traps: anonymous permits with weights are NP-hard (PARTITION), and such a history is left to the
general engine.  An owner that goes on after an unknown outcome makes the owned test inexact,
unless hold ids tell its holds apart.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

from checkers.models.base import ACQUIRE, BUSY, LOCK_F, NOT_HELD, RELEASE, integer
from checkers.monitors.holds import Hold, before, block, group, in_turn
from checkers.monitors.span import INF, Span, Verdict, by_key, judge, ms, service
from checkers.monitors.sweep import Point, Step, at_one_instant, sweep
from harness.core.history import Interval


def check(intervals: Iterable[Interval], *, k: int = 1, anonymous: bool = False) -> Verdict:
    """Whether never more than ``k`` permits were out."""

    def one(spans: list[Span], verdict: Verdict) -> None:
        if any(span.seen == BUSY for span in spans):
            verdict.doubt("busy answers", spans[0].key)
            spans = [span for span in spans if span.seen != BUSY]
        if anonymous:
            _greedy(spans, k, verdict)
        else:
            _owned(spans, k, verdict)

    return judge("semaphore", by_key(intervals, LOCK_F), one)


def permits(span: Span) -> int | None:
    """``value.permits`` of the operation, None if it doesn't say."""
    return integer(span.value.get("permits"))


def _owned(spans: list[Span], k: int, verdict: Verdict) -> None:
    steps: list[Step] = []
    points: list[Point] = []
    if all(span.hold is not None for span in spans):
        for number, hold in enumerate(group(spans, verdict)):
            _hold_steps(hold, number, steps, points, verdict)
    else:
        if any(span.hold is not None for span in spans):
            verdict.doubt("some operations have a hold id and some have none", spans[0].key)
        owners: dict[Any, list[Span]] = {}
        for span in spans:
            owners.setdefault(span.owner, []).append(span)
        for owner, ops in owners.items():
            _owner_steps(owner, ops, steps, verdict)
    if at_one_instant(steps, points):
        verdict.doubt("permits taken and given back at one instant", spans[0].key)
    over, crowded = sweep(steps, points, k)
    for step, holding in over:
        held = [other.span for other in holding if other is not step] + [step.span]
        verdict.add(
            service(
                "too-many-permits",
                step.span.key,
                f"{step.span.who} was granted by {ms(step.at)} while all {k} permits were surely "
                "out",
                [span.event for span in held],
                legal_if=f"one of the {len(held) - 1} holders had asked for its release by then",
            )
        )
    for point in crowded:
        verdict.add(
            service(
                "no-free-instant",
                point.span.key,
                f"{point.span.who} was told at {ms(point.high)} that it had held, but at no moment "
                f"since {ms(point.low)} were fewer than {k} permits out",
                [point.span.invoke, point.span.event],
                legal_if="one of the others had asked for its release by then",
            )
        )


def _hold_steps(
    hold: Hold, number: int, steps: list[Step], points: list[Point], verdict: Verdict
) -> None:
    acquire = hold.acquire
    weight = 1 if acquire is None else permits(acquire)
    weight = 1 if weight is None else weight
    given = [permits(span) for span in hold.rest]
    if weight < 1 or any(p is not None and p != weight for p in given):
        if weight < 1 or not _partial(hold, number, weight, steps):
            verdict.doubt("a hold gave back a part of its permits", hold.rest[0].key)
        return
    found = block(hold, verdict)
    if found is None:
        return
    if found.a < found.b:
        steps.append(Step(found.a, weight, found.start, number))
        if found.b < INF:
            steps.append(Step(found.b, -weight, found.end or found.start, number))
    else:
        points.append(
            Point(found.b, found.a, weight, found.start, found.end or found.start, number)
        )


def _partial(hold: Hold, number: int, weight: int, steps: list[Step]) -> bool:
    """Permits given back bit by bit; False if that is not plain sailing."""
    acquire = hold.acquire
    if acquire is None or not acquire.ok:
        return False
    mine = [Step(acquire.ret, weight, acquire, number)]
    last = acquire
    for span in hold.rest:
        if not span.ok or not before(last, span) or span.call == last.ret:
            return False
        last = span
        if span.f == RELEASE:
            back = permits(span)
            back = weight if back is None else back
            if back > weight or back < 1:
                return False
            weight -= back
            mine.append(Step(span.call, -back, span, number))
        elif weight < 1:
            return False
    steps.extend(mine)
    return True


def _owner_steps(owner: Any, ops: list[Span], steps: list[Step], verdict: Verdict) -> None:
    """An owner's permits are counted; its operations come one after the other."""
    if not in_turn(ops, verdict):
        return
    had = 0
    for span in ops:
        count = permits(span)
        count = 1 if count is None else count
        if count < 1:
            verdict.doubt("a number of permits below 1", span.key)
            return
        if span.f == ACQUIRE:
            if span.ok:
                had += count
                steps.append(Step(span.ret, count, span, owner))
        elif span.seen == NOT_HELD:
            if had >= count:
                _local("lost-lock", span, "it was told that it holds none", verdict)
        elif had < count:
            if span.ok:
                _local("confirmed-without-grant", span, f"it held {had}", verdict)
        elif span.f == RELEASE:
            had -= count
            steps.append(Step(span.call, -count, span, owner))


def _local(kind: str, span: Span, says: str, verdict: Verdict) -> None:
    verdict.add(
        service(
            kind,
            span.key,
            f"{span.who}: {span.f} answered {'ok' if span.ok else 'not-held'} at {ms(span.ret)}, "
            f"but {says}",
            [span.invoke, span.event],
            legal_if="the answer had been the other one",
        )
    )


def _greedy(spans: list[Span], k: int, verdict: Verdict) -> None:
    """Anonymous unit permits: nothing is done before it must be."""
    ops = [span for span in spans if span.seen is None and span.f in (ACQUIRE, RELEASE)]
    if any(permits(span) not in (None, 1) for span in ops):
        verdict.doubt("anonymous permits with weights", ops[0].key)
        return
    events = [(span.call, 0, span.invoke, i) for i, span in enumerate(ops)]
    events += [(span.ret, 1, span.done, i) for i, span in enumerate(ops) if span.ok]
    if len({(at, ops[i].process) for at, _, _, i in events}) < len(events):
        verdict.doubt("a process ended and began operations at one instant", ops[0].key)
    events.sort()
    done = [False] * len(ops)
    waiting: dict[str, list[tuple[int, int]]] = {ACQUIRE: [], RELEASE: []}
    used = 0
    for _, ends, _, i in events:
        span = ops[i]
        if not ends:
            heapq.heappush(waiting[span.f], (span.ret, i))
            continue
        if done[i]:
            continue
        takes = span.f == ACQUIRE
        if used == (k if takes else 0):
            other = waiting[RELEASE if takes else ACQUIRE]
            while other and done[other[0][1]]:
                heapq.heappop(other)
            if not other:
                verdict.add(_stuck(span, k, takes))
                return
            done[heapq.heappop(other)[1]] = True
            used += -1 if takes else 1
        done[i] = True
        used += 1 if takes else -1


def _stuck(span: Span, k: int, takes: bool) -> Any:
    return service(
        "too-many-permits" if takes else "confirmed-without-grant",
        span.key,
        f"{span.who}: {span.f} answered ok at {ms(span.ret)}, but "
        + (f"all {k} permits were out" if takes else "no permit was out")
        + " whatever the order of the operations before it",
        [span.invoke, span.event],
        legal_if="a release had been asked by then" if takes else "a permit had been out",
    )
