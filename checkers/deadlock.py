"""deadlock: did clients wait for each other's locks in a circle?  (K24.)

    wait-cycle   each of them held a lock and waited for one that the next of them held

A circle is seen at the moment at which its last wait begins; how long it stood is told, too: until
one of the waits was over, or a lease.  It can only show where clients take several locks at once.

Traps.  A hold counts as long as its client may rely on it: up to the call of its release, and no
longer than its lease after the answer of the last operation that prolonged it; who was granted a
key last has it.  A wait is over with its answer, also one that leaves its outcome open, and with
the death of its client.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, RELEASE, RENEW
from checkers.monitors.span import INF, Span, ms
from checkers.outcome import ruled, unapplied
from checkers.view import View
from harness.core.history import History
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result


class Hold(msgspec.Struct, gc=False, frozen=True):
    """A client had a lock from ``start`` to ``end``."""

    process: int | str
    key: str | None
    start: int
    end: int
    acquire: Span


class Cycle(msgspec.Struct, gc=False, frozen=True):
    """Waits and the holds that they wait for, in the order of the circle, until ``end``."""

    waits: tuple[Span, ...]
    holds: tuple[Hold, ...]
    start: int
    end: int


class Deadlock:
    """Circles of clients that wait for each other."""

    name = "deadlock"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        held = [hold for key, spans in view.locks.items() for hold in holds_of(key, spans, view)]
        found, several = cycles(held, waits_of(view))
        stats: dict[str, Any] = {
            "exact": True,
            "why": "read off the history",
            "waits_while_holding": several,
        }
        if not several:
            return unapplied(self, "nobody ever asked for a lock while it held another", stats)
        longest = max((cycle.end - cycle.start for cycle in found), default=0)
        stats |= {"cycles": len(found), "longest_ms": longest / 1_000_000}
        says = f"{several} times a client asked for a lock while it held another, never in a circle"
        return ruled(self, says, stats, [_anomaly(cycle) for cycle in found])


def holds_of(key: str | None, spans: list[Span], view: View) -> list[Hold]:
    """The holds of one key."""
    mine: dict[Any, list[Span]] = {}
    for span in spans:
        mine.setdefault(span.process if span.hold is None else (span.hold,), []).append(span)
    found = []
    for ops in mine.values():
        for at, span in enumerate(ops):
            if span.f != ACQUIRE or not span.ok:
                continue
            lasts = span.ttl if span.ttl is not None else view.ttl_ns
            over = span.ret + lasts if view.leased and lasts is not None else INF
            for later in ops[at + 1 :]:
                if later.f == ACQUIRE:
                    break
                if later.f == RENEW and later.ok and later.call < over and over < INF:
                    own = later.ttl if later.ttl is not None else lasts
                    over = max(over, later.ret + (own or 0))
                if later.f == RELEASE:
                    over = min(over, later.call)
                    break
            for death in view.deaths.get(span.process, ()):
                if death >= span.ret:
                    over = min(over, death)
            found.append(Hold(span.process, key, span.ret, over, span))
    return found


def waits_of(view: View) -> list[Span]:
    """All acquires, each up to the time to which its client waited (as ``ret``)."""
    return [
        msgspec.structs.replace(span, ret=view.waited_to(span))
        for spans in view.locks.values()
        for span in spans
        if span.f == ACQUIRE
    ]


def cycles(held: list[Hold], waits: list[Span]) -> tuple[list[Cycle], int]:
    """(all circles, how often a client asked for a lock while it held another one).

    A sweep over the times; each circle is found once, when its last wait or hold begins.
    """
    events: list[tuple[int, int, int, Any]] = [
        (hold.start, 1, hold.acquire.event, hold) for hold in held
    ]
    events += [(wait.call, 2, wait.invoke, wait) for wait in waits]
    events.sort(key=lambda event: event[:3])
    holder: dict[str | None, Hold] = {}
    mine: dict[int | str, dict[str | None, Hold]] = {}
    waiting: dict[int | str, Span] = {}
    found: list[Cycle] = []
    several = 0
    for time, kind, _, what in events:
        if kind == 1:
            holder[what.key] = what
            has = mine.setdefault(what.process, {})
            if what.key not in has or has[what.key].end < what.end:
                has[what.key] = what
            begin = [wait for wait in waiting.values() if wait.key == what.key]
        else:
            waiting[what.process] = what
            begin = [what]
            has = mine.get(what.process, {})
            several += any(key != what.key and time < hold.end for key, hold in has.items())
        for wait in begin:
            cycle = _follow(wait, time, holder, waiting)
            if cycle is not None:
                found.append(cycle)
    return found, several


def _follow(
    first: Span, time: int, holder: dict[str | None, Hold], waiting: dict[int | str, Span]
) -> Cycle | None:
    """The circle that ``first`` closes at ``time``, if it does."""
    waits, holds, wait = [first], [], first
    seen = {first.process}
    while True:
        if not wait.call <= time < wait.ret:
            return None
        hold = holder.get(wait.key)
        if hold is None or not hold.start <= time < hold.end or hold.process == wait.process:
            return None
        holds.append(hold)
        following = waiting.get(hold.process)
        if following is None:
            return None
        if hold.process == first.process:
            end = min(*(wait.ret for wait in waits), *(hold.end for hold in holds))
            return Cycle(tuple(waits), tuple(holds), time, end)
        if hold.process in seen:
            return None  # a circle that the first one is not part of, told when it closed
        seen.add(hold.process)
        waits.append(following)
        wait = following


def _anomaly(cycle: Cycle) -> Anomaly:
    chain = ", ".join(
        f"{wait.who} waits for {wait.key!r} of {hold.acquire.who}"
        for wait, hold in zip(cycle.waits, cycle.holds, strict=True)
    )
    until = (
        "to the end of the history" if cycle.end >= INF else f"for {ms(cycle.end - cycle.start)}"
    )
    ops = [hold.acquire.event for hold in cycle.holds] + [wait.invoke for wait in cycle.waits]
    return Anomaly(
        kind="wait-cycle",
        ops=list(dict.fromkeys(ops)),
        says=f"from {ms(cycle.start)} on, {until}, a circle: {chain}",
        key=cycle.waits[0].key,
        legal_if="all clients took their locks in one order",
    )
