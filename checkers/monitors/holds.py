"""Holds: which operations belong to one acquire attempt, and the zone each one must cover.

A *hold* is an acquire attempt with its renewals and release.  With hold ids that is given; without
them an owner's operations are paired in program order, which is exact as long as the owner does
nothing more after an operation of unknown outcome (the session rule).  ``holds`` checks it.

A hold that was confirmed becomes a *block* with ``a`` = least return and ``b`` = greatest call of
its confirmed operations.  Block X must come before Y iff X.a < Y.b, and an order of blocks exists
iff no two of them must each come before the other (Gibbons & Korach's zones, SIAM J. Comput. 26(4),
1997, for blocks of operations).  So for a mutex:

    A ok, R ok or unknown    -> [A.ret, R.call]     the lock is surely held in between
    A ok, no release         -> [A.ret, INF]
    A unknown, R ok          -> [R.ret, R.call]     backward: one instant in [R.call, R.ret]
    A unknown, unconfirmed   -> no block: it need not have happened

Trap: a release that answered "not held" is an observation, judged here hold by hold ("lost lock").
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, NOT_HELD, RELEASE
from checkers.monitors.span import INF, Span, Verdict, ms, service
from harness.core.result import Anomaly


class Hold(msgspec.Struct, gc=False):
    """An acquire attempt (None: never seen) and what came after it, in line order."""

    acquire: Span | None
    rest: list[Span]

    @property
    def granted(self) -> bool:
        return self.acquire is not None and self.acquire.ok


class Block(msgspec.Struct, gc=False):
    """The zone of a confirmed hold.  start, end: the spans that gave ``a`` and ``b``."""

    a: int
    b: int
    hold: Hold
    start: Span
    end: Span | None
    token: int | None = None

    @property
    def ops(self) -> list[int]:
        """Its witness: the events that prove it held from ``a`` to ``b``."""
        found = [] if self.hold.acquire is None else [self.hold.acquire.event]
        if self.start is not self.hold.acquire:
            found.append(self.start.event)
        if self.end is not None:
            found.append(self.end.invoke if self.end.info else self.end.event)
        return found

    @property
    def who(self) -> str:
        return self.start.who


def group(spans: list[Span], verdict: Verdict) -> list[Hold]:
    """The holds of one key, in line order of their first operation."""
    named = sum(1 for span in spans if span.hold is not None)
    if named == len(spans):
        return _by_hold(spans, verdict)
    if named:
        verdict.doubt("some operations have a hold id and some have none", spans[0].key)
    return _by_owner(spans, verdict)


def _by_hold(spans: list[Span], verdict: Verdict) -> list[Hold]:
    found: dict[Any, Hold] = {}
    for span in spans:
        hold = found.get(span.hold)
        if span.f == ACQUIRE:
            if hold is None:
                found[span.hold] = Hold(span, [])
            elif hold.acquire is None:
                hold.acquire = span
            else:
                verdict.doubt(f"hold id {span.hold!r} was used for two acquire attempts", span.key)
                # One record more, so that nothing is lost; the engine decides.
                found[(span.hold, span.invoke)] = Hold(span, [])
        elif hold is None:
            found[span.hold] = Hold(None, [span])
        else:
            hold.rest.append(span)
    return list(found.values())


def _by_owner(spans: list[Span], verdict: Verdict) -> list[Hold]:
    """Pairs by owner in program order; in doubt if an owner went on after an unknown outcome."""
    found: list[Hold] = []
    last: dict[Any, Span] = {}
    current: dict[Any, Hold] = {}
    for span in spans:
        before = last.get(span.owner)
        if before is not None:
            if before.info:
                verdict.doubt(f"{span.who} went on after an unknown outcome", span.key)
            elif before.ret > span.call or (
                before.ret == span.call and before.process != span.process
            ):
                verdict.doubt(f"{span.who} had two operations at once", span.key)
        last[span.owner] = span
        hold = current.get(span.owner)
        if span.f == ACQUIRE:
            if span.seen is None:
                current[span.owner] = hold = Hold(span, [])
                found.append(hold)
        elif hold is None:
            current[span.owner] = hold = Hold(None, [span])
            found.append(hold)
        else:
            hold.rest.append(span)
    return found


def before(x: Span, y: Span) -> bool:
    """x must come before y: it ended earlier, or on the same process in an earlier line."""
    if x.ret != y.call or x.process != y.process:
        return x.ret < y.call
    return x.invoke < y.invoke


def in_turn(ops: list[Span], verdict: Verdict) -> bool:
    """Whether operations come one after the other and none follows an unknown outcome; if not, the
    general engine must be asked."""
    for x, y in pairwise(ops):
        if x.info or not before(x, y):
            verdict.doubt(f"{y.who} went on after an unknown outcome, or did two at once", y.key)
            return False
    return True


def _refusals(hold: Hold, confirmed: list[Span], verdict: Verdict) -> None:
    """Judges "not held" answers of a lock that never expires.

    One is right if it may come before everything that confirms the hold, or after its end: a
    release that may come first, and nothing confirmed that must come later.
    """
    releases = [span for span in hold.rest if span.f == RELEASE and span.seen is None]
    for answer in hold.rest:
        if answer.seen != NOT_HELD:
            continue
        proof = next((span for span in confirmed if before(span, answer)), None)
        if proof is None:
            continue
        later = next((span for span in confirmed if before(answer, span)), None)
        if all(before(answer, release) for release in releases):
            verdict.add(
                service(
                    "lost-lock",
                    answer.key,
                    f"{answer.who} held since {ms(proof.ret)} at the latest, nobody had asked for "
                    f"its release, and it was told at {ms(answer.ret)} that it does not hold",
                    [proof.event, answer.event],
                    legal_if="a release had been asked, or the lock had a lease that was over",
                )
            )
        elif later is not None:
            verdict.add(_after_the_end(answer, later))


def _after_the_end(end: Span, late: Span) -> Anomaly:
    return service(
        "confirmed-after-its-end",
        late.key,
        f"{late.who}: {late.f} answered ok at {ms(late.ret)} although its hold had ended by "
        f"{ms(end.ret)}",
        [end.event, late.event],
        legal_if=f"the {late.f} had answered that the lock is not held",
    )


def confirmations(hold: Hold, verdict: Verdict) -> list[Span]:
    """The operations that prove a hold existed, acquire first; empty if it need not have.

    What was confirmed without a grant is a violation (and proves no hold).
    """
    acquire = hold.acquire
    okays = [span for span in hold.rest if span.ok]
    bad = okays[:1] if acquire is None or acquire.seen is not None else []
    if not bad and acquire is not None:
        bad = [span for span in okays if before(span, acquire)][:1]
    for span in bad:
        verdict.add(
            service(
                "confirmed-without-grant",
                span.key,
                f"{span.who}: {span.f} answered ok at {ms(span.ret)}, but its hold was "
                + ("never acquired" if acquire is None else "not granted before"),
                [acquire.event, span.event] if acquire else [span.event],
                legal_if=f"the {span.f} had answered that the lock is not held",
            )
        )
        return []
    return [acquire, *okays] if acquire is not None and acquire.ok else okays


def block(hold: Hold, verdict: Verdict) -> Block | None:
    """The zone of a hold of a lock that never expires; local violations go to the verdict."""
    confirmed = confirmations(hold, verdict)
    if not confirmed or hold.acquire is None:
        return None
    if len(hold.rest) > 1 or (hold.rest and hold.rest[0].seen is not None):
        _refusals(hold, confirmed, verdict)
        released = [span for span in confirmed if span.f == RELEASE]
        if released:
            end = min(released, key=lambda span: span.ret)
            late = next(
                (
                    span
                    for span in confirmed
                    if span is not end and (span.f == RELEASE or before(end, span))
                ),
                None,
            )
            if late is not None:
                verdict.add(_after_the_end(end, late))
    start = min(confirmed, key=lambda span: span.ret)
    end = max((hold.acquire, *confirmed), key=lambda span: span.call)
    a = min(start.ret, hold.acquire.until)
    if any(span.f == RELEASE for span in confirmed):
        return Block(a, end.call, hold, start, end)
    asked = [span for span in hold.rest if span.f == RELEASE and span.info]
    if not asked:
        return Block(a, INF, hold, start, None)
    first = min(asked, key=lambda span: span.call)
    end = max((end, first), key=lambda span: span.call)
    return Block(a, end.call, hold, start, end)


def touching_doubt(blocks: list[Block], verdict: Verdict) -> None:
    """Equal times are concurrent, but not within a process: if a process confirmed one hold and
    ended another at the very same instant, zones do not tell their order, and the engine is asked.
    """
    ends: dict[int, list[Block]] = {}
    for x in blocks:
        if x.end is not None:
            ends.setdefault(x.b, []).append(x)
    for x in blocks:
        for y in ends.get(x.a, ()):
            if x is not y and _tied(x, y):
                verdict.doubt("a process used two holds at one instant", x.start.key)
                return


def _tied(x: Block, y: Block) -> bool:
    """Whether some process ended an operation of x at x.a and began one of y then, after it."""
    first = [(s.process, s.invoke) for s in _all(x.hold) if s.ok and s.ret == x.a]
    second = [(s.process, s.invoke) for s in _all(y.hold) if s.call == y.b]
    return any(p == q and i < j for p, i in first for q, j in second)


def _all(hold: Hold) -> list[Span]:
    return ([hold.acquire] if hold.acquire else []) + hold.rest


def collisions(blocks: list[Block]) -> list[tuple[Block, Block]]:
    """Pairs of blocks that must each come before the other, one for each block that collides with
    an earlier one; empty iff the blocks can be put in order.  O(n log n)."""
    forward = sorted((x for x in blocks if x.a < x.b), key=lambda x: (x.a, x.b))
    found: list[tuple[Block, Block]] = []
    reach: list[Block] = []  # reach[i]: the block of forward[:i+1] that ends last
    last: Block | None = None
    for x in forward:
        if last is not None and last.b > x.a:
            found.append((last, x))
        if last is None or x.b > last.b:
            last = x
        reach.append(last)
    starts = [x.a for x in forward]
    for x in blocks:
        if x.a >= x.b:
            i = bisect_left(starts, x.b) - 1
            if i >= 0 and reach[i].b > x.a:
                found.append((reach[i], x))
    return found


def report(x: Block, y: Block, verdict: Verdict) -> None:
    """Adds the anomaly for two blocks that collide."""
    first, second = (x, y) if x.a <= y.a else (y, x)
    if y.a >= y.b:
        verdict.add(
            service(
                "no-free-instant",
                y.start.key,
                f"{y.who} was told at {ms(y.a)} that it had held (asked at {ms(y.b)}), but "
                f"{x.who} surely held from {ms(x.a)} to {ms(x.b)}, all that time",
                x.ops + y.ops,
                legal_if=f"{x.who} had asked for its release before {ms(y.a)}",
            )
        )
        return
    overlap_ns = None if min(x.b, y.b) >= INF else min(x.b, y.b) - second.a
    until = "for good" if overlap_ns is None else f"for {ms(overlap_ns)}"
    verdict.add(
        service(
            "double-grant",
            x.start.key,
            f"{second.who} was granted the lock by {ms(second.a)} while {first.who} surely held "
            f"it from {ms(first.a)} to {ms(first.b)}: two holders {until}",
            first.ops + second.ops,
            overlap_ns=overlap_ns,
            legal_if=f"{first.who} had asked for its release before {ms(second.a)}",
        )
    )
