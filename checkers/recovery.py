"""recovery: how long after the holder was hit did somebody else get its lock?  (Take-over.)

    takeover_ms   from the fault to the next grant of a lock that its victim held
    not-taken-over   a holder died, others wanted its lock, and none got it within the bound

What frees the lock of a dead holder is its lease, from the last operation that prolonged it; then
the bound for a grant when nothing is in the way counts (``context.recovery_ms_max``).  Where locks
end with a session or connection it counts from the death.

Traps.  ``liveness`` looks at the time after the last fault was over; here the fault may go on.  A
time is counted only while somebody was asking for the lock and no other fault was in the way.  A
paused or cut-off holder may keep its lock rightly, so only deaths are judged; other faults on
holders give figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, RENEW
from checkers.monitors.belief import Window
from checkers.monitors.span import INF, NS_PER_MS, Span, at_key, ms
from checkers.outcome import result, unapplied
from checkers.view import WORKER_KILL, View
from harness.core.history import History
from harness.core.protocols import CheckContext, FaultWindow
from harness.core.result import Anomaly, Result, Valid


class Takeover(msgspec.Struct, frozen=True):
    """A holder that was hit, and the grant that followed.  asked: stretches of time, without a
    break, in which others asked for the lock, up to that grant."""

    fault: FaultWindow
    window: Window
    asked: tuple[tuple[int, int], ...]
    next: Span | None

    @property
    def took_ns(self) -> int | None:
        return None if self.next is None else self.next.ret - self.fault.start_ns

    def waited_ns(self, free_ns: int, others: Sequence[FaultWindow]) -> int:
        """Longest that somebody asked on end after the lock should have been free, without the
        times of other faults (sorted by their start)."""
        longest = -1
        for begin, end in self.asked:
            since = max(begin, free_ns)
            for fault in others:
                longest = max(longest, min(fault.start_ns, end) - since)
                since = max(since, INF if fault.end_ns is None else fault.end_ns)
            longest = max(longest, end - since)
        return longest


class Recovery:
    """Time from a holder's death or other mishap to the next grant of its lock."""

    name = "recovery"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        found = list(takeovers(view))
        deaths = [one for one in found if one.fault.kind == WORKER_KILL]
        stats = _figures(found, deaths)
        if not deaths or context.recovery_ms_max is None:
            took = stats["takeover_ms"]
            says = "no holder died, so no take-over is judged"
            if took is not None:
                says += f"; after a fault on a holder the next grant came within {took:.0f} ms"
            return unapplied(self, says, stats)
        bound_ns = context.recovery_ms_max * NS_PER_MS
        anomalies = []
        for one in deaths:
            free_ns = _free_ns(one, view)
            waited_ns = one.waited_ns(free_ns, _others(one.fault, context))
            if waited_ns > bound_ns:
                anomalies.append(_anomaly(one, free_ns, waited_ns, bound_ns))
        judged = [one for one in deaths if one.asked and one.next is not None]
        if anomalies:
            return result(self, Valid.FALSE, anomalies[0].says, stats, anomalies)
        if not judged:
            says = "a holder died, but nobody asked for its lock long enough to tell"
            return unapplied(self, says, stats)
        says = (
            f"{len(judged)} locks of dead holders, the slowest granted again "
            f"{stats['takeover_ms']:.0f} ms after the death"
        )
        return result(self, Valid.TRUE, says, stats)


def takeovers(view: View) -> Iterator[Takeover]:
    """For each fault on a client that held a lock just then: what became of its lock."""
    for fault in (*view.context.faults, *view.crashes):
        victims = {process for target in fault.targets for process in _processes(target, view)}
        if not fault.bit or not victims:
            continue
        for key, windows in view.windows.items():
            for window in windows:
                # A killed holder's belief ends at that very moment.
                if window.process in victims and window.start <= fault.start_ns <= window.naive_end:
                    yield _takeover(fault, window, view.locks[key], view)


def _processes(target: str, view: View) -> list[int | str]:
    """Processes of a worker or of the worker at the beginning of a link ("w1-redis")."""
    return view.processes(target) or view.processes(target.partition("-")[0])


def _takeover(fault: FaultWindow, window: Window, spans: list[Span], view: View) -> Takeover:
    others = [s for s in spans if s.f == ACQUIRE and s.process != window.process]
    after = [s for s in others if s.ok and s.ret > fault.start_ns]
    following = min(after, key=lambda span: span.ret, default=None)
    limit_ns = view.history.end_ns if following is None else following.ret
    asked: list[tuple[int, int]] = []
    for span in sorted(others, key=lambda span: span.call):
        begin, end = max(span.call, fault.start_ns), min(view.waited_to(span), limit_ns)
        if begin >= end:
            continue
        if asked and begin <= asked[-1][1]:
            asked[-1] = (asked[-1][0], max(end, asked[-1][1]))
        else:
            asked.append((begin, end))
    return Takeover(fault, window, tuple(asked), following)


def _free_ns(one: Takeover, view: View) -> int:
    """When the lock should have been free: at the death, or when its lease was over."""
    acquire, free_ns = one.window.acquire, one.fault.start_ns
    if view.leased:
        lasts = acquire.ttl if acquire.ttl is not None else view.ttl_ns or 0
        free_ns = max(free_ns, acquire.ret + lasts)
        for span in view.locks[acquire.key]:
            if span.f == RENEW and span.hold == acquire.hold and span.seen is None:
                # One without an answer may have come late, but not after its client's death.
                known = span.ret if span.ok else max(span.call, one.fault.start_ns)
                free_ns = max(free_ns, known + (span.ttl if span.ttl is not None else lasts))
    return free_ns


def _others(fault: FaultWindow, context: CheckContext) -> list[FaultWindow]:
    others = (other for other in context.faults if other.id != fault.id)
    return sorted(others, key=lambda other: other.start_ns)


def _figures(found: list[Takeover], deaths: list[Takeover]) -> dict[str, Any]:
    times = [one.took_ns for one in found if one.took_ns is not None]
    return {
        "exact": True,
        "why": "read off the history",
        "hit_holders": len(found),
        "deaths": len(deaths),
        "takeover_ms": max(times) / NS_PER_MS if times else None,
        "never_taken_over": sum(1 for one in found if one.next is None),
    }


def _anomaly(one: Takeover, free_ns: int, waited_ns: int, bound_ns: int) -> Anomaly:
    acquire = one.window.acquire
    got = "nobody got it" if one.next is None else f"it was granted only at {ms(one.next.ret)}"
    ops = [acquire.event, *([] if one.next is None else [one.next.event])]
    return Anomaly(
        kind="not-taken-over",
        ops=ops,
        says=at_key(acquire.key)
        + f"{acquire.who} died at {ms(one.fault.start_ns)} while it held the lock, which should "
        f"have been free by {ms(free_ns)}; others asked for it for {ms(waited_ns)} on "
        f"end, with nothing else in the way, and {got}; the bound is {ms(bound_ns)}",
        key=acquire.key,
        legal_if=f"somebody who asked had been granted it within {ms(bound_ns)} of {ms(free_ns)}",
    )
