"""One sweep over a staircase of weights: the test that semaphore and read/write lock share.

Holders add weight when they surely have begun and take it off when they may have ended; the sum
must never exceed ``k``.  By the canonical schedule (acquire as late, release as early as possible)
this is exact: a weight that is there at an instant is there in every legal order.

A *point* is a holder that needs just one instant of its window with room for its weight; points
do not compete with each other, each takes an instant of its own.

Trap: at one tick releases come before acquires (equal times are concurrent), so the least sum of a
tick is the one between the two.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec

from checkers.monitors.span import Span

_CHUNK = 512


class Step(msgspec.Struct, gc=False):
    """A change of weight at ``at`` (ns), proven by ``span``.  holder: any key."""

    at: int
    delta: int
    span: Span
    holder: object


class Point(msgspec.Struct, gc=False):
    """Needs an instant in [low, high] with ``weight`` to spare.  start, span: what gave the two."""

    low: int
    high: int
    weight: int
    start: Span
    span: Span
    holder: object


def at_one_instant(steps: list[Step], points: list[Point]) -> bool:
    """Whether some process took and then gave back at one instant: the sweep, which lets releases
    come first, would see the two the wrong way round, and the engine must be asked.

    A point whose two ends fall together is no such case: it is asked as a point.
    """
    taken: dict[tuple[int, int | str], list[tuple[int, object, bool]]] = {}
    for step in steps:
        if step.delta > 0:
            place = (step.at, step.span.process)
            taken.setdefault(place, []).append((step.span.invoke, step.holder, False))
    for point in points:
        place = (point.high, point.start.process)
        taken.setdefault(place, []).append((point.start.invoke, point.holder, True))
    given = [(s.at, s.span, s.holder, False) for s in steps if s.delta < 0]
    given += [(p.low, p.span, p.holder, True) for p in points]
    for at, span, holder, is_point in given:
        for invoke, other, was_point in taken.get((at, span.process), ()):
            if holder == other and is_point and was_point:
                continue
            if invoke <= span.invoke:
                return True
    return False


def sweep(
    steps: list[Step], points: list[Point], k: int
) -> tuple[list[tuple[Step, list[Step]]], list[Point]]:
    """(steps that exceed k, each with those that hold then), (points without room)."""
    steps.sort(key=lambda step: (step.at, step.delta > 0))
    over: list[tuple[Step, list[Step]]] = []
    open_: dict[object, Step] = {}
    weights: dict[object, int] = {}
    total = 0
    ticks: list[int] = []
    lows: list[int] = []  # least sum at ticks[i]
    highs: list[int] = []  # sum after ticks[i]
    for step in steps:
        total += step.delta
        if not ticks or ticks[-1] != step.at:
            ticks.append(step.at)
            lows.append(min(total, highs[-1] if highs else 0))
            highs.append(total)
        else:
            lows[-1] = min(lows[-1], total)
            highs[-1] = total
        weight = weights.get(step.holder, 0) + step.delta
        weights[step.holder] = weight
        if step.delta > 0:
            open_[step.holder] = step
            if total > k:
                over.append((step, list(open_.values())[: k + 1] if len(over) < 64 else []))
        elif weight <= 0:
            open_.pop(step.holder, None)
    return over, _crowded(points, ticks, lows, highs, k)


def _crowded(
    points: list[Point], ticks: list[int], lows: list[int], highs: list[int], k: int
) -> list[Point]:
    if not points:
        return []
    chunks = [min(lows[i : i + _CHUNK]) for i in range(0, len(lows), _CHUNK)]
    found = []
    for point in points:
        i, j = bisect_left(ticks, point.low), bisect_right(ticks, point.high)
        least = highs[i - 1] if i else 0
        while i < j:
            if i % _CHUNK == 0 and i + _CHUNK <= j:
                least = min(least, chunks[i // _CHUNK])
                i += _CHUNK
            else:
                least = min(least, lows[i])
                i += 1
        if least + point.weight > k:
            found.append(point)
    return found
