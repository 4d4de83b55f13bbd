"""availability: faults or not, was somebody who asked granted the lock within the bound?

    longest_vain_ms   longest time in which clients asked for a free lock and nobody got it
    not-granted       that was longer than ``context.grant_ms_max``

``liveness`` looks at the time after the last fault was over; here the faults may last.  What is
replicated promises to go on while a majority of its servers is there, so time counts only while
those who ask could reach one, and while nobody believes to hold the lock.

Traps.  Between two attempts clients pause: up to a tenth of the bound is still trying, if nothing
happened to the lock meanwhile.  A lock whose grant or release got no answer may rightly stay until
its lease is over, so the bound must be longer than that.  A run in which nobody asked during a
fault, or no fault outlasted the bound and had a grant, shows nothing: UNKNOWN.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE
from checkers.monitors.span import NS_PER_MS, Span, at_key, ms
from checkers.outcome import result, ruled, unapplied
from checkers.reach import Times, cut_off, cut_off_all, joined, touches, without
from checkers.view import View
from harness.core.history import History
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result, Valid

PAUSE_PART = 10  # this part of the bound may pass between two attempts
SHOWN_MAX = 6  # attempts that an anomaly names


class Vain(msgspec.Struct, frozen=True):
    """A time in which one lock was free and asked for, and nobody was granted it."""

    key: str | None
    start: int
    end: int

    @property
    def lasts(self) -> int:
        return self.end - self.start


class Availability:
    """Grants to those who ask while a majority of the servers is there."""

    name = "availability"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        bound_ms = context.grant_ms_max
        bound_ns = (bound_ms or 0) * NS_PER_MS
        asked = {key: list(_asked(spans, view)) for key, spans in view.locks.items()}
        found = list(vain(view, asked, bound_ns // PAUSE_PART))
        longest = max(found, key=lambda one: one.lasts, default=None)
        stats: dict[str, Any] = {
            "exact": True,
            "why": "read off the history",
            "longest_vain_ms": None if longest is None else longest.lasts / NS_PER_MS,
            "bound_ms": bound_ms,
        }
        if bound_ms is None:
            return unapplied(self, "no bound for grants is set (run.grant_ms)", stats)
        late = sorted(
            (one for one in found if one.lasts > bound_ns), key=lambda one: (one.start, one.end)
        )
        doubt = "" if late else _doubt(view, asked, bound_ns)
        if doubt:
            return result(self, Valid.UNKNOWN, doubt, stats)
        says = f"whoever asked for a free lock: one was granted within {bound_ms} ms"
        return ruled(self, says, stats, [_anomaly(one, view, bound_ns) for one in late])


def _asked(spans: Sequence[Span], view: View) -> Iterator[tuple[int, int]]:
    """Times in which somebody asked who could reach a majority."""
    away: dict[int | str, Times] = {}
    for span in spans:
        if span.f == ACQUIRE:
            if span.process not in away:
                away[span.process] = cut_off(view, span.process)
            end = min(view.waited_to(span), view.history.end_ns)
            yield from without(span.call, end, away[span.process])


def vain(view: View, asked: dict[str | None, Times], pause_ns: int) -> Iterator[Vain]:
    """All times in which a lock was asked for in vain; none of them touches another of its key."""
    away = cut_off_all(view)
    for key, times in asked.items():
        grants = [s.ret for s in view.locks[key] if s.f == ACQUIRE and s.ok]
        held = [(one.start, max(one.start, one.end)) for one in view.windows[key]]
        breaks = joined([*held, *((at, at) for at in grants), *away])
        last: tuple[int, int] | None = None
        for begin, end in joined(times):
            for since, until in without(begin, end, breaks):
                if last is None:
                    last = (since, until)
                elif since - last[1] <= pause_ns and not touches(last[1], since, breaks):
                    last = (last[0], until)
                else:
                    yield Vain(key, *last)
                    last = (since, until)
        if last is not None:
            yield Vain(key, *last)


def _doubt(view: View, asked: dict[str | None, Times], bound_ns: int) -> str:
    """Why a run without anything late shows nothing; empty if it does."""
    if not any(asked.values()):
        return "nobody who could reach a majority of the servers asked for a lock"
    faults = [fault for fault in view.context.faults if fault.bit]
    everything = joined([piece for times in asked.values() for piece in times])
    tried = False
    for fault in faults:
        end_ns = view.history.end_ns if fault.end_ns is None else fault.end_ns
        if not any(begin < end_ns and end > fault.start_ns for begin, end in everything):
            continue
        tried = True
        first = bisect_left(view.grants, fault.start_ns, key=lambda span: span.ret)
        granted = first < len(view.grants) and view.grants[first].ret <= end_ns
        if granted or end_ns - fault.start_ns > bound_ns:
            return ""
    if tried:
        return f"no fault lasted longer than the bound of {ms(bound_ns)}, and no grant fell in one"
    if faults:
        return "nobody who could reach a majority asked for a lock while a fault lasted"
    return ""


def _anomaly(one: Vain, view: View, bound_ns: int) -> Anomaly:
    spans = [
        span
        for span in view.locks[one.key]
        if span.f == ACQUIRE and span.call < one.end and view.waited_to(span) >= one.start
    ]
    spans.sort(key=lambda span: span.call)
    ended = [span for span in spans if span.done >= 0 and view.waited_to(span) <= one.end]
    errors = (view.history.ops[span.done].error for span in reversed(ended) if not span.ok)
    told = next((error for error in errors if error), None)
    granted = any(span.ok and span.ret == one.end for span in spans)
    during = [
        fault
        for fault in view.context.faults
        if fault.start_ns < one.end and (fault.end_ns is None or fault.end_ns > one.start)
    ]
    why = (
        f", during {' and '.join(dict.fromkeys(fault.kind for fault in during))}" if during else ""
    )
    return Anomaly(
        kind="not-granted",
        ops=[spans[0].invoke, *(span.event for span in ended[: SHOWN_MAX - 1])],
        says=at_key(one.key)
        + f"from {ms(one.start)} to {ms(one.end)} clients asked for it{why}, in {len(spans)} "
        f"attempts that could reach a majority of the servers; nobody held it and "
        f"{'it was granted only then' if granted else 'nobody got it'}"
        + (f" (one was told {told!r})" if told else "")
        + f"; the bound is {ms(bound_ns)}",
        key=one.key,
        legal_if=f"somebody had been granted it by {ms(one.start + bound_ns)}",
    )
