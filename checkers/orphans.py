"""orphans: was somebody refused although nobody can have had the lock?  (K05, K16, K17.)

    busy-though-free   an acquire was answered "busy", and from its call to its answer no client
                       held the lock, asked for it, or can have left it behind; or it waited for
                       PATIENCE_NS, outside of all faults, and others only asked for it, too

    permit-leaked      the same of a semaphore: fewer than k others can have had a permit, or
                       somebody waited for the bound of the run although one was left

Readers are in a writer's way and writers in everybody's; readers are not in each other's.

What stays behind are entries of the dead, of attempts that timed out or whose answer was lost, and
locks that nobody can release; they block everybody until somebody cleans up.

How long something may stay is counted generously: to the answer of its release; without one for a
lease from the last operation that may have prolonged it (where locks end with a session or
connection, for ``context.recovery_ms_max``), and anew from the end of every fault that began
before that was over, since faults hold requests back and servers give leases their full time again.

Traps.  It can only show where something may have been left: without an attempt of unknown outcome,
a death or a lost release nothing is shown.  Faults on a server's clock make leases last longer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, BUSY, NOT_HELD, RELEASE, RENEW
from checkers.monitors.span import INF, NS_PER_MS, Span, at_key, ms
from checkers.outcome import ruled, unapplied
from checkers.sharing import reads
from checkers.view import View
from harness.core.history import History
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result

PATIENCE_NS = 1_000 * NS_PER_MS  # askers get in each other's way for a moment, not for long
SLACK_NS = 500 * NS_PER_MS  # a server looks after its leases a few times a second


class Orphans:
    """Refusals without anybody who could hold the lock."""

    name = "orphans"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        wrong_clock = next((f for f in context.faults if f.kind.startswith("clock-")), None)
        if wrong_clock is not None:
            return unapplied(self, f"{wrong_clock.kind} makes leases of any length", {})
        anomalies: list[Anomaly] = []
        left = refused = 0
        for key, spans in view.locks.items():
            if any(span.hold is None for span in spans):
                continue
            stays = sorted(_stays(spans, view), key=lambda stay: stay.start)
            left += sum(1 for stay in stays if not stay.ended)
            busy = [span for span in spans if span.f == ACQUIRE and span.seen == BUSY]
            refused += len(busy)
            if view.sharing.k > 1:
                asked = [span for span in spans if span.f == ACQUIRE]
                anomalies += _leaks(key, asked, Crowds(stays, view.sharing.k), view)
                continue
            readers = [span for span in busy if view.sharing.modes and reads(span)]
            others = [span for span in busy if not (view.sharing.modes and reads(span))]
            writing = [stay for stay in stays if not stay.reads]
            alone = _alone(others, stays, view) + _alone(readers, writing, view)
            anomalies += [_anomaly(key, span, stays) for span in alone]
        stats: dict[str, Any] = {
            "exact": False,
            "why": "what may have stayed behind is counted generously",
            "left_behind": left,
            "refused": refused,
            "violations": len(anomalies),
        }
        if not left and not anomalies:
            return unapplied(self, "nothing was left behind that could block anybody", stats)
        says = f"{left} holds or attempts without an end; nobody was refused because of one"
        anomalies.sort(key=lambda anomaly: anomaly.ops[-1])
        return ruled(self, says, stats, anomalies)


class Stay(msgspec.Struct, gc=False, frozen=True):
    """What one attempt may have had at the server, from ``start`` to ``end`` at most.  ended: the
    history has its end.  asked: it was refused, so it had no more than a place in a queue."""

    start: int
    end: int
    hold: Any
    ended: bool
    asked: bool = False
    reads: bool = False


def _stays(spans: list[Span], view: View) -> Iterator[Stay]:
    """Everything that may have been the lock's."""
    mine: dict[Any, list[Span]] = {}
    for span in spans:
        mine.setdefault(span.hold, []).append(span)
    for hold, ops in mine.items():
        acquire = next((span for span in ops if span.f == ACQUIRE), None)
        if acquire is None:
            continue
        if not acquire.ok and acquire.seen is not None:
            yield Stay(acquire.call, acquire.ret, hold, True, asked=True, reads=reads(acquire))
            continue
        over = next(
            (
                s.ret
                for s in ops
                if s.f in (RELEASE, RENEW) and (_released(s) or s.seen == NOT_HELD)
            ),
            None,
        )
        if over is not None:
            yield Stay(acquire.call, over, hold, True, reads=reads(acquire))
        else:
            over = _over(acquire, ops, view)
            yield Stay(acquire.call, over, hold, False, reads=reads(acquire))


def _released(span: Span) -> bool:
    return span.f == RELEASE and span.ok


def _over(acquire: Span, ops: list[Span], view: View) -> int:
    """Until when a hold can last that nobody ended."""
    lasts_ns = _lasts(acquire, view)
    if lasts_ns is None:
        return INF
    over = 0
    for span in ops:
        if span.f in (ACQUIRE, RENEW):
            known = span.ret if span.ret < INF else _given_up(span, view)
            own = lasts_ns if span.ttl is None or not view.leased else max(span.ttl, lasts_ns)
            # Until it died, its client may have kept the lease up by itself.
            died = max(view.deaths.get(span.process, ()), default=0)
            over = max(over, max(known, died) + own + SLACK_NS)
    for fault in sorted(view.context.faults, key=lambda fault: fault.start_ns):
        if fault.start_ns <= over:
            end_ns = INF if fault.end_ns is None else fault.end_ns
            over = max(over, min(INF, end_ns + lasts_ns + SLACK_NS))
    return over


def _given_up(span: Span, view: View) -> int:
    """When the client of an operation of unknown outcome stopped waiting for it."""
    ops = view.history.ops
    return ops[span.done].time if 0 <= span.done < len(ops) else view.history.end_ns


def _lasts(acquire: Span, view: View) -> int | None:
    if view.leased:
        return acquire.ttl if acquire.ttl is not None else view.ttl_ns
    bound_ms = view.context.recovery_ms_max
    return bound_ms * NS_PER_MS if view.bound and bound_ms is not None else None


def _alone(busy: list[Span], stays: list[Stay], view: View) -> list[Span]:
    """Refusals during which there was nothing else.  stays: sorted."""
    everything, holds = Reach(stays), Reach([stay for stay in stays if not stay.asked])
    found = []
    for span in busy:
        if everything.latest(span) < span.call:
            found.append(span)
            continue
        since_ns = max(span.call, holds.latest(span), _faults_over(span.ret, view))
        if span.ret - since_ns >= PATIENCE_NS:
            found.append(span)
    return found


class Reach:
    """How long anything reaches that began by a given time.  stays: sorted by their start."""

    def __init__(self, stays: list[Stay]) -> None:
        self._stays = stays
        self._starts = [stay.start for stay in stays]
        self._ends: list[int] = []
        for stay in stays:
            self._ends.append(max(stay.end, self._ends[-1]) if self._ends else stay.end)

    def latest(self, span: Span) -> int:
        """The latest end of all that began by the answer of ``span``, itself left out."""
        at, latest = bisect_right(self._starts, span.ret) - 1, -1
        while at >= 0 and self._ends[at] > latest:
            if self._stays[at].hold != span.hold:
                latest = max(latest, self._stays[at].end)
            if latest >= span.ret:
                break
            at -= 1
        return latest


class Crowds:
    """How many may have had a permit at once.  stays: sorted by their start."""

    def __init__(self, stays: list[Stay], k: int) -> None:
        self.k = k
        self._all = [stay.start for stay in stays], sorted(stay.end for stay in stays)
        holds = [stay for stay in stays if not stay.asked]
        self._holds = [stay.start for stay in holds], sorted(stay.end for stay in holds)

    def full(self, span: Span) -> bool:
        """Whether at some moment of ``span`` all permits may have been others', counting those too
        who only asked."""
        starts, ends = self._all
        begun = starts[bisect_right(starts, span.call) : bisect_right(starts, span.ret)]
        most = max(_open(starts, ends, time) for time in (span.call, *begun))
        return most - 1 >= self.k  # it is one of them

    def room(self, span: Span, until: int) -> list[tuple[int, int]]:
        """The stretches of ``span`` in which fewer than k others can have held."""
        starts, ends = self._holds
        mine = int(span.seen is None)  # a grant is one of the holds itself
        times = starts[bisect_right(starts, span.call) : bisect_right(starts, until)]
        times += ends[bisect_left(ends, span.call) : bisect_right(ends, until)]
        found, since = [], None
        for time in sorted([span.call, *(time for time in times if time < until)]):
            free = bisect_right(starts, time) - bisect_right(ends, time) - mine < self.k
            if free and since is None:
                since = time
            if not free and since is not None:
                found.append((since, time))
                since = None
        return found if since is None else [*found, (since, until)]


def _open(starts: list[int], ends: list[int], time: int) -> int:
    """How many were there, those too that just ended."""
    return bisect_right(starts, time) - bisect_left(ends, time)


def _length(stretch: tuple[int, int]) -> int:
    return stretch[1] - stretch[0]


def _leaks(key: str | None, asked: list[Span], crowds: Crowds, view: View) -> Iterator[Anomaly]:
    """Who was refused, or waited too long, although a permit was left."""
    bound_ms, end_ns = view.context.recovery_ms_max, view.history.end_ns
    patience = INF if bound_ms is None else max(PATIENCE_NS, bound_ms * NS_PER_MS)
    for span in asked:
        busy = span.seen == BUSY
        if busy and not crowds.full(span):
            yield _leaked(key, span, (span.call, span.ret), crowds.k)
            continue
        if not (busy or span.ok or span.done < 0):
            continue
        until = min(view.waited_to(span), end_ns)
        if until - span.call < PATIENCE_NS:
            continue
        stretch = max(_quiet(crowds.room(span, until), view), key=_length, default=(0, 0))
        if _length(stretch) >= (PATIENCE_NS if busy else patience):
            yield _leaked(key, span, stretch, crowds.k)


def _leaked(key: str | None, span: Span, stretch: tuple[int, int], k: int) -> Anomaly:
    got = "was told busy" if span.seen == BUSY else "waited"
    return Anomaly(
        kind="permit-leaked",
        ops=list(dict.fromkeys([span.invoke, span.event])),
        says=at_key(key)
        + f"{span.who} {got} (asked at {ms(span.call)}), but from {ms(stretch[0])} to "
        f"{ms(stretch[1])} fewer than all {k} permits can have been out",
        key=key,
        legal_if=f"{k} others had held or asked for a permit then",
    )


def _faults_over(time_ns: int, view: View) -> int:
    """When the last of the faults that had begun by ``time_ns`` was over."""
    begun = (fault for fault in view.context.faults if fault.start_ns <= time_ns)
    return max((INF if f.end_ns is None else f.end_ns for f in begun), default=0)


def _quiet(stretches: list[tuple[int, int]], view: View) -> Iterator[tuple[int, int]]:
    """What faults leave of stretches of time."""
    faults = sorted(view.context.faults, key=lambda fault: fault.start_ns)
    for start_ns, end_ns in stretches:
        since_ns = start_ns
        for fault in faults:
            if fault.start_ns >= end_ns:
                break
            if fault.start_ns > since_ns:
                yield since_ns, fault.start_ns
            since_ns = max(since_ns, INF if fault.end_ns is None else fault.end_ns)
        if since_ns < end_ns:
            yield since_ns, end_ns


def _anomaly(key: str | None, span: Span, stays: list[Stay]) -> Anomaly:
    last = max((stay.end for stay in stays if stay.end < span.call), default=0)
    return Anomaly(
        kind="busy-though-free",
        ops=[span.invoke, span.event],
        says=at_key(key)
        + f"{span.who} was told busy at {ms(span.ret)} (asked at {ms(span.call)}), but nobody can "
        f"have had the lock after {ms(last)}",
        key=key,
        legal_if="somebody had held the lock or asked for it meanwhile",
    )
