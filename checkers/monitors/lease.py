"""Leases: the service may pass a lock on only when it was released or its TTL is over.

    check(history.intervals(), ttl_ns=10_000_000)                    "safe"
    check(history.intervals(), ttl_ns=10_000_000, property="exact")

A grant or renew that took effect at p runs to p + TTL.  *safe*: nobody else is granted the lock
before that moment or the release (at exactly that moment is legal), and a "not held" answer to the
holder needs it too; a lease that ran out may linger, so that renew and release are still answered
ok.  *exact*: also over at p + TTL, so that an ok renew or release needs p + TTL in the future.
``drift_ppm`` bounds the clock-rate error between us and the server; it shortens the TTL.

Two steps.  First zones, as for a mutex, but a hold without an ok release surely lasts only to the
call of its last refresh + TTL.  If those are disjoint, the order of the holds is forced, and one
pass gives each operation the earliest point it can have ("exact" first moves points up by what a
later renew needs); a hold that cannot start in time was granted too early.  That pass finds
overlaps smaller than one round trip.  Holds that need one instant only (grant unknown, release ok)
are put into the latest gap they fit in.

Traps.  A TTL shorter than the call's latency leaves the order open, which is NP-hard (sequencing
within intervals, Garey & Johnson): the verdict is then not exact.  What clients *believe* after
their TTL is not judged here: see ``belief``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from checkers.models.base import ACQUIRE, BUSY, LOCK_F, NOT_HELD, RELEASE, RENEW
from checkers.monitors.holds import (
    Block,
    Hold,
    before,
    collisions,
    confirmations,
    group,
    report,
    touching_doubt,
)
from checkers.monitors.mutex import tokens
from checkers.monitors.span import INF, Span, Verdict, by_key, judge, ms, service
from harness.core.history import Interval
from harness.core.result import Anomaly

SAFE, EXACT = "safe", "exact"
SCALE = 2_000_000  # a TTL shortened by a whole number of ppm is a whole, even number of units
EXPIRE = "expire"
_NAMES = {**LOCK_F, EXPIRE: EXPIRE}


class Run(msgspec.Struct, gc=False):
    """A confirmed hold with what bounds it.  ops: what is confirmed, in order; ttls: how long each
    of them lasts (0 for a release), in 1/SCALE ns; asked: first release of unknown outcome."""

    block: Block
    ops: list[Span]
    ttls: list[int]
    refusals: list[Span]
    asked: Span | None
    released: bool
    unknown_renews: bool

    @property
    def key(self) -> str | None:
        return self.block.start.key


def check(
    intervals: Iterable[Interval],
    *,
    ttl_ns: int | None = None,
    drift_ppm: int = 0,
    property: str = SAFE,
    fenced: bool = False,
) -> Verdict:
    """Whether grants respect leases.  ttl_ns: for acquires without one of their own (None: they
    never run out).  fenced: the grants' tokens must grow too."""
    if property not in (SAFE, EXACT):
        raise ValueError(f"property is {property!r}, it must be {SAFE!r} or {EXACT!r}")

    def one(spans: list[Span], verdict: Verdict) -> None:
        if any(span.f == EXPIRE for span in spans):
            verdict.doubt("the service reported expiries", spans[0].key)
            spans = [span for span in spans if span.f != EXPIRE]
        runs = []
        for hold in group([span for span in spans if span.seen != BUSY], verdict):
            run = prepare(hold, ttl_ns, drift_ppm, verdict)
            if run is not None:
                runs.append(run)
        blocks = [run.block for run in runs]
        touching_doubt(blocks, verdict)
        known = verdict.count
        for x, y in collisions(blocks):
            report(x, y, verdict)
        if verdict.count == known:
            chain(runs, verdict, exact=property == EXACT)
        if fenced:
            tokens(blocks, verdict)

    name = "lease" if property == SAFE else "lease-exact"
    return judge(name, by_key(intervals, _NAMES), one)


def shortest(ttl_ns: int, drift_ppm: int) -> int:
    """The least time after which a server whose clock is fast by ``drift_ppm`` ends a lease."""
    return ttl_ns - -(-ttl_ns * drift_ppm // 1_000_000)


def prepare(hold: Hold, ttl_ns: int | None, drift_ppm: int, verdict: Verdict) -> Run | None:
    """The run of a hold, None if it need not have existed; local violations go to the verdict."""
    confirmed = confirmations(hold, verdict)
    acquire = hold.acquire
    if not confirmed or acquire is None:
        return None
    line = [span for span in (acquire, *hold.rest) if not span.info]
    line.sort(key=lambda span: span.invoke)
    if any(not before(x, y) for x, y in pairwise(line)):
        verdict.doubt("a hold had two operations at once", acquire.key)
    confirmed.sort(key=lambda span: span.invoke)
    ops: list[Span] = []
    for span in confirmed:
        if ops and ops[-1].f == RELEASE:
            verdict.add(_late(ops[-1], span))
            return None
        ops.append(span)
    own = acquire.ttl if acquire.ttl is not None else ttl_ns
    ttls = [_ttl(span, own) for span in ops]
    zone = _zone(hold, ops, INF if ttls[-1] >= INF else shortest(ttls[-1], drift_ppm))
    lasting = [min(INF, ttl) * 2 * (1_000_000 - drift_ppm) for ttl in ttls]
    released = ops[-1].f == RELEASE
    asked = min(
        (span for span in hold.rest if span.f == RELEASE and span.info),
        key=lambda span: span.call,
        default=None,
    )
    refusals = [span for span in hold.rest if span.seen == NOT_HELD]
    renews = any(span.f == RENEW and span.info for span in hold.rest)
    if not released and asked is not None and max(asked.call, ops[-1].call) < zone.b:
        zone.b, zone.end = max(asked.call, ops[-1].call), asked
    return Run(zone, ops, lasting, refusals, asked, released, renews)


def _ttl(span: Span, own: int | None) -> int:
    if span.f == RELEASE:
        return 0
    ttl_ns = own if span.f == ACQUIRE or span.ttl is None else span.ttl
    return INF if ttl_ns is None else ttl_ns


def _late(end: Span, late: Span) -> Anomaly:
    return service(
        "confirmed-after-its-end",
        late.key,
        f"{late.who}: {late.f} answered ok at {ms(late.ret)} although its hold was released by "
        f"{ms(end.ret)}",
        [end.event, late.event],
        legal_if=f"the {late.f} had answered that the lock is not held",
    )


def _zone(hold: Hold, ops: list[Span], ttl_ns: int) -> Block:
    """Where the hold surely was, whatever the points: to its release's call, or to the earliest
    moment at which it can have run out."""
    acquire = hold.acquire
    start = min(ops, key=lambda span: span.ret)
    a = min(start.ret, acquire.until if acquire is not None else INF)
    last = max(ops, key=lambda span: span.call)
    if ops[-1].f == RELEASE:
        asked = last if acquire is None else max((acquire, last), key=lambda span: span.call)
        return Block(a, asked.call, hold, start, last)
    return Block(a, min(INF, last.call + ttl_ns), hold, start, last if len(ops) > 1 else None)


def chain(runs: list[Run], verdict: Verdict, *, exact: bool) -> None:
    """Gives every operation its earliest point; times are in units of 1/SCALE ns."""
    forward = sorted(
        (run for run in runs if run.block.a < run.block.b), key=lambda run: run.block.a
    )
    points = []
    for run in runs:
        if run.block.a >= run.block.b:
            if run.released or (run.asked is not None and run.block.end is run.asked):
                points.append(run)
            else:
                verdict.doubt("a TTL shorter than the call it was granted in", run.key)
    points.sort(key=lambda run: run.block.a)
    now = -INF
    former: Run | None = None
    waiting = 0
    for run in forward:
        end, problem = earliest(run, now, exact=exact)
        while problem is None and waiting < len(points) and SCALE * points[waiting].block.a < end:
            # It cannot wait until after this hold: it must have had its instant before.
            point = points[waiting]
            waiting += 1
            now = max(now, SCALE * point.block.b)
            if now > SCALE * point.block.a:
                _blame(point, former, now, point.block.start, verdict)
                return
            former = point
            end, problem = earliest(run, now, exact=exact)
        if problem is not None:
            if exact and run.unknown_renews:
                verdict.doubt("a renew of unknown outcome may have been needed", run.key)
            else:
                _blame(run, former, now, problem, verdict)
            return
        now, former = end, run
    for run in points:
        _, problem = earliest(run, -INF, exact=exact)
        if problem is not None:
            _blame(run, None, -INF, problem, verdict)


def earliest(run: Run, now: int, *, exact: bool) -> tuple[int, Span | None]:
    """(moment from which the next may hold, None), or the operation that comes too late.

    now and the moment are in units of 1/SCALE ns; an odd number is "just after" the even one.
    """
    lows = [SCALE * span.call for span in run.ops]
    if run.block.hold.acquire is not None:
        lows[0] = max(lows[0], SCALE * run.block.hold.acquire.call)
    if exact:
        for i in range(len(lows) - 2, -1, -1):
            lows[i] = max(lows[i], (lows[i + 1] - run.ttls[i]) | 1)
    points = []
    for low, span in zip(lows, run.ops, strict=True):
        now = max(now, low)
        if now > SCALE * span.ret:
            return now, span
        points.append(now)
    end = now + run.ttls[-1]
    if run.asked is not None and not run.released:
        end = min(end, max(now, SCALE * run.asked.call))
    for answer in run.refusals:
        if not _refused_rightly(run, answer, points, exact=exact):
            return now, answer
    return (now if run.released else end), None


def _refused_rightly(run: Run, answer: Span, points: list[int], *, exact: bool) -> bool:
    """Whether "not held" can be true: before its begin, after its end, or after the TTL."""
    i = sum(1 for span in run.ops if before(span, answer)) - 1
    if i < 0:
        return True
    over = points[i] + run.ttls[i] <= SCALE * answer.ret
    if i < len(run.ops) - 1:
        return over and not exact
    asked = run.asked
    return (
        over
        or run.released
        or (asked is not None and asked.call <= answer.ret and not before(answer, asked))
    )


def _blame(run: Run, former: Run | None, now: int, late: Span, verdict: Verdict) -> None:
    if late.seen is not None:
        grant = next(span for span in reversed(run.ops) if before(span, late))
        verdict.add(
            service(
                "lost-lock",
                run.key,
                f"{late.who} was told at {ms(late.ret)} that it does not hold, but its lease of "
                f"{ms(run.ttls[run.ops.index(grant)] // SCALE)} from {ms(grant.call)} on was not "
                "over and nobody had asked for its release",
                [grant.event, late.event],
                legal_if="its TTL had been over, or a release had been asked",
            )
        )
        return
    if former is None or now <= SCALE * late.call:
        i = run.ops.index(late)
        grant = run.ops[max(0, i - 1)]
        verdict.add(
            service(
                "confirmed-after-its-end",
                run.key,
                f"{late.who}: {late.f} answered ok at {ms(late.ret)}, but its lease had run out",
                [grant.event, late.event],
                legal_if="it had been renewed in time",
            )
        )
        return
    short_ns = -((SCALE * late.ret - now) // SCALE)
    verdict.add(
        service(
            "early-takeover",
            run.key,
            f"{late.who} was granted the lock by {ms(late.ret)}, {ms(short_ns)} before the hold of "
            f"{former.block.who} (granted by {ms(former.block.a)}) could have ended",
            former.block.ops + run.block.ops[:1],
            overlap_ns=short_ns,
            legal_if=f"it had been granted {ms(short_ns)} later",
        )
    )
