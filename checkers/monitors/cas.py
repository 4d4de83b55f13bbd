"""Register with read, write and compare-and-set, if every value is written once.  O(n log n).

    check(history.intervals(), initial=None)

The *block* of a value is its write and all its reads; a = least return, b = greatest call, and
block X must come before Y iff X.a < Y.b (zones of Gibbons & Korach).  A CAS from u to v glues the
block of v right behind the block of u, so blocks form chains: u has one successor at most, inside
a chain nothing may have to come before something earlier, and the chains must be orderable.  A
write of unknown outcome counts only if its value was seen: read, or compared by a CAS that counts.

Traps.  Values written twice (or a write of the initial value) make the question NP-complete; so do
refused CAS that count as observations.  Those go to the general engine.  A read of unknown outcome
says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from checkers.models.register import CAS, READ, WRITE, _held, cas_pair, payload
from checkers.monitors.holds import Block, Hold, collisions
from checkers.monitors.span import INF, Span, Verdict, judge, ms, sees, service, to_span
from harness.core.history import Interval
from harness.core.result import Side


class Value(msgspec.Struct, gc=False):
    """Block of one value.  old: what its CAS replaced; after: the value that replaced it."""

    writer: Span | None
    old: Any
    a: int
    b: int
    first: Span | None
    last: Span | None
    after: Any = None


def check(intervals: Iterable[Interval], *, initial: Any = None) -> Verdict:
    """Whether reads, writes and CAS of each key can be put in a legal order."""
    keys: dict[str | None, list[Span]] = {}
    for op in intervals:
        f = op.invoke.f
        span = to_span(op, f) if f in (READ, WRITE, CAS) else None
        if span is None or (f == READ and not span.ok):
            continue
        if span.seen is not None and not sees(span):
            continue
        if f == READ:
            old = op.complete.value if op.complete is not None else None
            span.value = (old if type(old) is int else _held(payload(op.complete)), None)
        elif f == CAS:
            old, new = cas_pair(op)
            span.value = (_held(old), _held(new))
        else:
            span.value = (None, _held(payload(op.invoke)))
        keys.setdefault(span.key, []).append(span)
    start = _held(initial)

    def one(spans: list[Span], verdict: Verdict) -> None:
        _one(spans, start, verdict)

    return judge("cas", keys, one)


def _one(spans: list[Span], initial: Any, verdict: Verdict) -> None:
    key = spans[0].key
    if any(span.seen is not None for span in spans):
        verdict.doubt("refused CAS as observations", key)
        spans = [span for span in spans if span.seen is None]
    if _ties(spans):
        verdict.doubt("a process ended and began operations at one instant", key)
    writers: dict[Any, Span] = {}
    for span in spans:
        if span.f != READ:
            new = span.value[1]
            if new in writers or new == initial:
                verdict.doubt("a value was written twice", key)
                return
            writers[new] = span
    blocks = _blocks(_effective(spans, writers), initial, verdict)
    if blocks is None:
        return
    chains = _chains(blocks, verdict)
    for x, y in collisions(chains):
        first, second = (x, y) if x.a <= y.a else (y, x)
        verdict.add(
            _data(
                "stale-read",
                key,
                f"value seen by {ms(first.a)} and again after {ms(first.b)}, with another value "
                f"certain in between (by {ms(second.a)})",
                [first.start.event, second.start.event]
                + [block.end.event for block in (second, first) if block.end is not None],
            )
        )


def _ties(spans: list[Span]) -> bool:
    last: dict[int | str, int] = {}
    for span in spans:
        if last.get(span.process) == span.call:
            return True
        last[span.process] = span.ret
    return False


def _effective(spans: list[Span], writers: dict[Any, Span]) -> list[Span]:
    """Operations that must have happened: a write of unknown outcome only if its value was seen."""
    if all(span.ok for span in spans):
        return spans
    kept = {span.invoke for span in spans if span.ok}
    seen = [span.value[0] for span in spans if span.ok and span.f in (READ, CAS)]
    while seen:
        writer = writers.get(seen.pop())
        if writer is not None and writer.invoke not in kept:
            kept.add(writer.invoke)
            if writer.f == CAS:
                seen.append(writer.value[0])
    return [span for span in spans if span.invoke in kept]


def _blocks(spans: list[Span], initial: Any, verdict: Verdict) -> dict[Any, Value] | None:
    """The block of each value; None after a violation that leaves no blocks to speak of."""
    blocks = {initial: Value(None, None, -INF, -INF, None, None)}
    for span in spans:
        if span.f != READ:
            end = span.ret if span.ok else span.until
            last = span if span.ok else None
            blocks[span.value[1]] = Value(span, span.value[0], end, span.call, last, span)
    for span in spans:
        if span.f not in (READ, CAS):
            continue
        block = blocks.get(span.value[0])
        if block is None:
            verdict.add(
                _data(
                    "phantom-value",
                    span.key,
                    f"{span.who}: {span.f} saw a value by {ms(span.ret)} that nobody wrote",
                    [span.event],
                )
            )
            return None
        if span.f == CAS:
            if block.after is not None:
                verdict.add(_twice(block, blocks[block.after].writer, span))
                return None
            block.after = span.value[1]
            continue
        if span.ret < block.a:
            block.a, block.first = span.ret, span
        if span.call > block.b:
            block.b, block.last = span.call, span
    for block in blocks.values():
        if block.writer is not None and block.a < block.writer.call and block.first is not None:
            verdict.add(
                _data(
                    "read-from-future",
                    block.writer.key,
                    f"{block.first.who} saw a value by {ms(block.first.ret)} whose write was asked "
                    f"for at {ms(block.writer.call)}",
                    [block.first.event, block.writer.invoke],
                )
            )
            return None
    return blocks


def _twice(block: Value, first: Span | None, second: Span) -> Any:
    return _data(
        "replaced-twice",
        second.key,
        f"{second.who} replaced a value (by {ms(second.ret)}) that "
        + ("another CAS" if first is None else first.who)
        + " had replaced too",
        ([] if first is None else [first.event]) + [second.event],
    )


def _chains(blocks: dict[Any, Value], verdict: Verdict) -> list[Block]:
    """Chains of blocks glued by CAS, each as one block."""
    chains: list[Block] = []
    reached = 0
    for block in blocks.values():
        if block.writer is not None and block.writer.f == CAS:
            continue
        a, b, start, end = block.a, block.b, block.first, block.last
        reached += 1
        current = block
        while current.after is not None:
            current = blocks[current.after]
            reached += 1
            if current.a < b:
                late = end if end is not None else current.first
                ops = [s.event for s in (current.first, late) if s is not None]
                verdict.add(
                    _data(
                        "order-broken",
                        current.first.key if current.first else None,
                        f"a value was seen at {ms(b)} or later although one that replaced it was "
                        f"there by {ms(current.a)}",
                        ops,
                    )
                )
                return []
            if current.a < a:
                a, start = current.a, current.first
            if current.b > b:
                b, end = current.b, current.last
        shown = start or end
        if shown is not None:
            chains.append(Block(a, b, Hold(None, []), shown, end))
    if reached < len(blocks):
        circle = [block.writer for block in blocks.values() if block.writer is not None]
        verdict.add(
            _data(
                "order-broken",
                circle[0].key,
                "compare-and-set operations replace each other's values in a circle",
                [span.event for span in circle if span.f == CAS][:4],
            )
        )
    return chains


def _data(kind: str, key: str | None, says: str, ops: list[int]) -> Any:
    return service(
        kind,
        key,
        says,
        ops,
        side=Side.RESOURCE,
        legal_if="the operations had been answered in one order",
    )
