"""The fenced resource: a write is accepted iff its token is at least the greatest accepted so far.

    check(history.intervals())      writes with tokens: ok = accepted, "stale" = refused

Exact, O(n log n): group accepted and unknown writes by token.  An accepted write of a group must
not have returned before an accepted write with a smaller token was called.  A refusal of token t
needs a greater token T that can have been accepted in time: not before all accepted writes with a
smaller token than T were called, and not before a write with T was.  (Refusals change nothing,
so the as-soon-as-possible schedule serves all of them at once; unknown writes never hurt in it.)

Traps.  A plain failure says nothing.  A write without a token makes the history one of an unfenced
resource, and the verdict is then in doubt; see ``checkers.fencing`` for the order of the holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import groupby

from checkers.monitors.span import INF, Span, Verdict, by_key, judge, ms, service
from harness.core.history import Interval
from harness.core.result import Side

WRITE, STALE = "write", "stale"


def check(intervals: Iterable[Interval]) -> Verdict:
    """Whether accepted writes came in order of their tokens and refusals had a reason."""
    return judge("resource", by_key(intervals, {WRITE: WRITE}), one)


def one(spans: list[Span], verdict: Verdict) -> None:
    """Judges the writes to one resource."""
    writes = [span for span in spans if span.token is not None]
    if len(writes) < len(spans):
        verdict.doubt("some writes carry no token", spans[0].key)
    counted = [span for span in writes if span.seen is None]
    counted.sort(key=lambda span: (span.token or 0, span.invoke))
    tokens: list[int] = []
    earliest: list[int] = []  # earliest[i]: when the greatest token can first be tokens[i]
    latest: Span | None = None  # accepted write with a smaller token that was called last
    for token, same in groupby(counted, key=lambda span: span.token or 0):
        group = list(same)
        accepted = [span for span in group if span.ok]
        bar = -1 if latest is None else latest.call
        if accepted and latest is not None:
            first = min(accepted, key=lambda span: span.ret)
            if first.ret < bar:
                _stale(first, latest, verdict)
            elif first.ret == bar:
                _tie(first, accepted, latest, verdict)
        can = max(bar, min(span.call for span in group))
        if can <= min((span.until for span in group if span.info), default=INF) or accepted:
            tokens.append(token)
            earliest.append(can)
        if accepted:
            last = max(accepted, key=lambda span: span.call)
            if latest is None or last.call > latest.call:
                latest = last
    _refusals(writes, tokens, earliest, verdict)


def _tie(first: Span, accepted: list[Span], latest: Span, verdict: Verdict) -> None:
    """Equal times are concurrent, unless one process did both."""
    for span in accepted:
        if (
            span.ret == latest.call
            and span.process == latest.process
            and span.invoke < latest.invoke
        ):
            _stale(span, latest, verdict)
            return
    if first.process != latest.process:
        verdict.doubt("writes of several processes meet at one instant", first.key)


def _stale(first: Span, late: Span, verdict: Verdict) -> None:
    verdict.add(
        service(
            "stale-write-accepted",
            late.key,
            f"{late.who}: its write with token {late.token} (asked at {ms(late.call)}) was "
            f"accepted although {first.who}'s with token {first.token} had been by "
            f"{ms(first.ret)}",
            [first.event, late.event],
            side=Side.RESOURCE,
            legal_if=f"the write with token {late.token} had been refused",
        )
    )


def _refusals(writes: list[Span], tokens: list[int], earliest: list[int], verdict: Verdict) -> None:
    after = list(earliest)  # after[i]: least of earliest[i:]
    for i in range(len(after) - 2, -1, -1):
        after[i] = min(after[i], after[i + 1])
    for span in writes:
        if span.seen != STALE:
            continue
        verdict.stats["stale_refused"] = verdict.stats.get("stale_refused", 0) + 1
        i = bisect_right(tokens, span.token or 0)
        if i < len(tokens) and after[i] == span.ret:
            verdict.doubt("a refusal meets a write at one instant", span.key)
        if i == len(tokens) or after[i] > span.ret:
            verdict.add(
                service(
                    "refused-without-reason",
                    span.key,
                    f"{span.who}: its write with token {span.token} was refused as stale at "
                    f"{ms(span.ret)}, but no greater token can have been accepted by then",
                    [span.invoke, span.event],
                    side=Side.RESOURCE,
                    legal_if="a write with a greater token had been accepted before",
                )
            )
