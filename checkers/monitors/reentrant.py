"""Reentrant mutex: an owner may acquire again and must release as often.  Exact, O(n).

    check(history.intervals(), limit=None)

Each owner's operations are walked in order with a counter: 0 -> 1 opens a block at that acquire's
return, 1 -> 0 closes it at that release's call; then the blocks must be orderable as for a mutex
(see ``holds``).  An owner's last operation may be of unknown outcome: an acquire is dropped, a
release ends the block only if the count is 1.

Trap: if an owner goes on after an unknown outcome, its count is ambiguous (an unknown acquire can
be used at any of several later moments), and the verdict is not exact: the general engine decides.
Hold ids are per attempt and do not say who nests, so identity is the owner, else the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from checkers.models.base import ACQUIRE, BUSY, LOCK_F, NOT_HELD, RENEW
from checkers.monitors.holds import Block, Hold, collisions, in_turn, report, touching_doubt
from checkers.monitors.span import INF, Span, Verdict, by_key, judge, ms, service
from harness.core.history import Interval


def check(intervals: Iterable[Interval], *, limit: int | None = None) -> Verdict:
    """Whether one owner held at a time, counted; at most ``limit`` times (None: any number)."""

    def one(spans: list[Span], verdict: Verdict) -> None:
        if any(span.seen == BUSY for span in spans):
            verdict.doubt("busy answers", spans[0].key)
        owners: dict[Any, list[Span]] = {}
        for span in spans:
            if span.seen != BUSY:
                owners.setdefault(span.owner, []).append(span)
        blocks: list[Block] = []
        for ops in owners.values():
            if len({span.process for span in ops}) > 1:
                _several(ops, verdict)
            _walk(ops, limit, blocks, verdict)
        touching_doubt(blocks, verdict)
        for x, y in collisions(blocks):
            report(x, y, verdict)

    return judge("reentrant", by_key(intervals, LOCK_F), one)


def _several(ops: list[Span], verdict: Verdict) -> None:
    """An owner of several processes: fine as long as they take turns, not even at one instant."""
    ends = sorted(ops, key=lambda span: span.call)
    for x, y in pairwise(ends):
        if x.ret >= y.call:
            verdict.doubt(f"{y.who} had two operations at once", y.key)
            return


def _walk(ops: list[Span], limit: int | None, blocks: list[Block], verdict: Verdict) -> None:
    if not in_turn(ops, verdict):
        return
    count = 0
    opened: Span | None = None
    for span in ops:
        if span.f == ACQUIRE:
            if span.ok:
                count += 1
                opened = span if count == 1 else opened
                if limit is not None and count > limit:
                    _wrong(span, f"it had acquired {limit} times, which is the limit", verdict)
                    return
        elif span.seen == NOT_HELD:
            if count:
                _wrong(span, f"it held the lock ({count} times)", verdict)
        elif not count:
            if span.ok:
                _wrong(span, "it did not hold the lock", verdict)
                return
        elif span.f != RENEW and (span.ok or count == 1):
            count -= 1
            if not count and opened is not None:
                blocks.append(Block(opened.ret, span.call, Hold(opened, [span]), opened, span))
                opened = None
    if opened is not None:
        blocks.append(Block(opened.ret, INF, Hold(opened, []), opened, None))


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
