"""Mutex with owners, fenced mutex: exact, O(n log n), no search.

    check(history.intervals())                  is it one holder at a time?
    check_fenced(history.intervals())           and do the grants' tokens grow?

Acquire needs a free lock; release and renew need its holder; it is not reentrant, and it has no
lease (with a TTL, ask ``checkers.monitors.lease``).  The zones of the confirmed holds must be
orderable (see ``holds``).  With tokens the order is given: a running maximum decides; grants
of unknown outcome that took effect used up a token each, so they need room between their neighbours
(unit jobs in intervals, earliest deadline first).

Traps: ``busy`` answers (somebody holds) are judged only with ``busy=True``, since a try-lock that
gives up for no reason is a nuisance, not a danger; together with unknown outcomes that test is
sound but not complete, and the verdict says so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from checkers.models.base import ACQUIRE, BUSY, LOCK_F, NOT_HELD, RELEASE
from checkers.monitors.holds import (
    Block,
    Hold,
    block,
    collisions,
    group,
    report,
    touching_doubt,
)
from checkers.monitors.span import INF, Span, Verdict, by_key, judge, ms, service
from harness.core.history import Interval


def check(intervals: Iterable[Interval], *, busy: bool = False) -> Verdict:
    """Whether the lock had one holder at a time.  ``busy``: judge busy answers too."""

    def one(spans: list[Span], verdict: Verdict) -> None:
        blocks = zones(spans, verdict)
        if busy:
            _busy(spans, blocks, verdict)

    return judge("mutex", by_key(intervals, LOCK_F), one)


def check_fenced(intervals: Iterable[Interval], *, busy: bool = False) -> Verdict:
    """A mutex, and each grant's token is greater than every earlier one."""

    def one(spans: list[Span], verdict: Verdict) -> None:
        blocks = zones(spans, verdict, fenced=True)
        tokens(blocks, verdict)
        if busy:
            _busy(spans, blocks, verdict)

    return judge("fenced", by_key(intervals, LOCK_F), one)


def zones(spans: list[Span], verdict: Verdict, *, fenced: bool = False) -> list[Block]:
    """The blocks of one key; collisions and local violations go to the verdict."""
    blocks = []
    for hold in group([span for span in spans if span.seen != BUSY], verdict):
        if fenced:
            _drop_impossible(hold, verdict)
        found = block(hold, verdict)
        if found is not None:
            blocks.append(found)
    touching_doubt(blocks, verdict)
    for x, y in collisions(blocks):
        report(x, y, verdict)
    return blocks


def _drop_impossible(hold: Hold, verdict: Verdict) -> None:
    """An operation of unknown outcome that named a wrong token cannot have taken effect."""
    odd = [span for span in hold.rest if span.info and span.token is not None]
    if not odd:
        return
    known = [s.token for s in (hold.acquire, *hold.rest) if s and s.ok and s.token is not None]
    if known:
        hold.rest = [s for s in hold.rest if s not in odd or s.token == known[0]]
    else:
        verdict.doubt("an operation of unknown outcome names an unknown token", odd[0].key)


def tokens(blocks: list[Block], verdict: Verdict) -> None:
    """Judges the tokens of disjoint holds of one key."""
    known: list[Block] = []
    unknown: list[Block] = []
    for x in blocks:
        x.token = _token(x.hold, verdict)
        if x.token is not None:
            known.append(x)
        elif x.hold.granted:
            verdict.add(
                service(
                    "grant-without-token",
                    x.start.key,
                    f"{x.who} was granted the lock at {ms(x.a)} without a fencing token",
                    x.ops[:1],
                    legal_if="the grant had carried an integer token",
                )
            )
        else:
            unknown.append(x)
    _rising(known, verdict)
    if unknown and verdict.count == 0:
        _room(known, unknown, verdict)


def _token(hold: Hold, verdict: Verdict) -> int | None:
    """The token of a hold: that of the grant, or the one its release or renew named."""
    acquire = hold.acquire
    given = acquire.token if acquire is not None and acquire.ok else None
    if acquire is not None and acquire.ok and given is None:
        return None
    for span in hold.rest:
        if not span.ok or span.token is None:
            continue
        if given is None:
            given = span.token
        elif span.token != given and acquire is not None:
            verdict.add(
                service(
                    "token-mismatch",
                    span.key,
                    f"{span.who}: {span.f} with token {span.token} answered ok, but its hold has "
                    f"token {given}",
                    [acquire.event, span.event],
                    legal_if="a wrong token had been refused",
                )
            )
    return given


def _rising(known: list[Block], verdict: Verdict) -> None:
    """Blocks in order of token: none may have to come before one with a smaller token."""
    known.sort(key=lambda x: (x.token or 0, x.a))
    last: Block | None = None  # ends last among the smaller tokens
    for i, x in enumerate(known):
        if i and known[i - 1].token == x.token:
            _token_anomaly("token-duplicate", known[i - 1], x, verdict)
        elif last is not None and last.b > x.a and not _collide(last, x):
            _token_anomaly("token-inversion", x, last, verdict)
        if last is None or x.b > last.b:
            last = x


def _collide(x: Block, y: Block) -> bool:
    return x.a < y.b and y.a < x.b


def _token_anomaly(kind: str, x: Block, y: Block, verdict: Verdict) -> None:
    first, second = (x, y) if x.a <= y.a else (y, x)
    verdict.add(
        service(
            kind,
            x.start.key,
            f"{first.who} was granted the lock by {ms(first.a)} with token {first.token}, "
            f"{second.who} after it, by {ms(second.a)}, with token {second.token}",
            [*first.ops[:1], *second.ops[:1]],
            legal_if=f"the later grant had carried a token greater than {first.token}",
        )
    )


def _room(known: list[Block], unknown: list[Block], verdict: Verdict) -> None:
    """Each grant of unknown outcome that took effect used a token: is there one left for it?

    Gap i lies before known[i]; a block fits into the gaps from ``low`` to ``high``.
    """
    if any(x.a < x.b for x in unknown) and len(unknown) > 1:
        verdict.doubt("renewed grants of unknown outcome compete for tokens", unknown[0].start.key)
        return
    reach: list[int] = []  # greatest b of known[:i+1], rising
    for x in known:
        reach.append(max(x.b, reach[-1]) if reach else x.b)
    starts: list[int] = []  # least a of known[i:], rising too
    for x in reversed(known):
        starts.append(min(x.a, starts[-1]) if starts else x.a)
    starts.reverse()
    left: dict[int, int] = {}
    skip = list(range(len(known) + 2))  # the next gap that may have room, with path halving

    def free(gap: int) -> int:
        while skip[gap] != gap:
            skip[gap] = skip[skip[gap]]
            gap = skip[gap]
        return gap

    # A block must come after known[j] iff reach > its a is false, and before iff starts >= its b.
    for x in sorted(unknown, key=lambda x: (x.a, x.b)):
        low = bisect_left(starts, x.b)
        high = bisect_right(reach, x.a)
        gap = free(low)
        while gap <= high and 0 < gap < len(known):
            room = (known[gap].token or 0) - (known[gap - 1].token or 0) - 1
            if left.setdefault(gap, room) > 0:
                break
            skip[gap] = gap + 1
            gap = free(gap)
        if gap > high:
            near = known[min(high, len(known) - 1)]
            verdict.add(
                service(
                    "no-token-left",
                    x.start.key,
                    f"{x.who} held for a moment between {ms(x.b)} and {ms(x.a)}, so its grant used "
                    f"a token, but the tokens around it (near {near.token}) leave none free",
                    x.ops + near.ops[:1],
                    legal_if="a token had been left out there",
                )
            )
        elif gap in left:
            left[gap] -= 1


def _busy(spans: list[Span], blocks: list[Block], verdict: Verdict) -> None:
    """A busy answer is wrong iff nobody can have held at any moment of the call.

    Exact if all outcomes are known (then the order of the holds is forced), else sound only.
    """
    answers = [span for span in spans if span.f == ACQUIRE and span.seen == BUSY]
    if not answers:
        return
    if any(span.info or span.seen == NOT_HELD for span in spans) or any(x.a >= x.b for x in blocks):
        verdict.doubt("busy answers together with unknown outcomes", spans[0].key, sound=True)
    released = {x.hold.acquire.invoke: _released(x) for x in blocks if x.hold.acquire}
    possible = [
        (span.call, released.get(span.invoke, INF))
        for span in spans
        if span.f == ACQUIRE and span.seen is None
    ]
    possible.sort()
    calls = [item[0] for item in possible]
    reach: list[int] = []
    for item in possible:
        reach.append(max(item[1], reach[-1]) if reach else item[1])
    for answer in answers:
        i = bisect_right(calls, answer.ret)
        if i and (reach[i - 1] == answer.call or calls[i - 1] == answer.ret):
            verdict.doubt("a busy answer meets a hold at one instant", answer.key, sound=True)
        if not i or reach[i - 1] < answer.call:
            verdict.add(
                service(
                    "busy-without-holder",
                    answer.key,
                    f"{answer.who} was told at {ms(answer.ret)} that the lock is busy, but nobody "
                    f"can have held it since {ms(answer.call)}",
                    [answer.invoke, answer.event],
                    legal_if="somebody had held it, or the answer had been a grant",
                )
            )


def _released(x: Block) -> int:
    """The last instant at which this hold can have lasted."""
    return min((span.ret for span in x.hold.rest if span.ok and span.f == RELEASE), default=INF)
