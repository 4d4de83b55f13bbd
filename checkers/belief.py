"""belief: how long did a holder go on believing in a lock that it had lost?  (Belief lag.)

    gone       the latest moment at which the lock can still have been there: its lease was over, or
               somebody else surely had it
    lag        from there to the end of the belief; ``awake``: without the time it was paused
    told by    what ended the belief: a loss signal, a refused renewal, its own deadline, or nothing
               before its own release

The figure is a lower bound: the lock may have gone earlier, never later.  With a bound
(``context.belief_lag_ms_max``) a longer awake lag is a violation; without one nothing is judged.

Traps.  A grant to somebody else whose call lies before ours proves nothing by itself, it may be
older than ours; it counts once it was confirmed.  A killed holder stops believing when it dies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, RELEASE, RENEW
from checkers.monitors.belief import Window, slept
from checkers.monitors.span import NS_PER_MS, Span, at_key, ms
from checkers.outcome import result, unapplied
from checkers.view import View
from harness.core.history import History
from harness.core.limits import ANOMALIES_MAX
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result, Side, Valid

UNAWARE = frozenset({"released", "end of history"})


class Loss(msgspec.Struct, gc=False, frozen=True):
    """A lock that was gone at ``gone_ns`` while its holder believed in it.  proof: the event that
    shows it, None where the lease was over.  awake_ns: ``lag_ns`` without sleep."""

    window: Window
    gone_ns: int
    proof: int | None
    lag_ns: int
    awake_ns: int


class Belief:
    """How long holders believed in locks that were gone, and what told them."""

    name = "belief"
    safety = True

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        bound_ms = context.belief_lag_ms_max
        found = sorted(losses(view), key=lambda loss: -loss.awake_ns)
        stats = figures(found, bound_ms)
        stats["signals"] = sum(len(signals) for signals in view.lost.values())
        if not found:
            says = "no holder is known to have lost its lock while it believed in it"
            return unapplied(self, says, stats)
        worst = found[0]
        says = (
            f"{len(found)} times a holder believed in a lock that was gone, at most for "
            f"{ms(max(loss.lag_ns for loss in found))} ({ms(worst.awake_ns)} of them awake)"
        )
        if bound_ms is None:
            return unapplied(self, says, stats)
        late = [loss for loss in found if loss.awake_ns > bound_ms * NS_PER_MS]
        valid = Valid.FALSE if late else Valid.TRUE
        anomalies = [_anomaly(loss, bound_ms) for loss in late[:ANOMALIES_MAX]]
        return result(self, valid, says, stats, anomalies)


def losses(view: View) -> Iterator[Loss]:
    """Every belief in a lock that was gone, from the history alone; O(n log n) per key."""
    for key, windows in view.windows.items():
        spans = view.locks[key]
        grants = sorted((s for s in spans if s.f == ACQUIRE and s.ok), key=lambda span: span.ret)
        times = [span.ret for span in grants]
        confirmed, renewals = _answers(spans)
        for window in windows:
            gone_ns = _lease_end(window, renewals, view.ttl_ns) if view.leased else None
            proof = None
            for at in range(bisect_right(times, window.start), len(grants)):
                span = grants[at]
                if span.ret >= (window.end if gone_ns is None else min(gone_ns, window.end)):
                    break
                sure = span.call >= window.start or confirmed.get(span.hold, -1) >= span.ret
                clash = span.process != window.process and view.sharing.clash(window.acquire, span)
                if clash and sure:
                    gone_ns, proof = span.ret, span.event
                    break
            if gone_ns is None or gone_ns >= window.end:
                continue
            lag_ns = window.end - gone_ns
            own = (pause for pause in view.pauses if pause.process == window.process)
            awake_ns = lag_ns - slept(own, gone_ns, window.end)
            yield Loss(window, gone_ns, proof, lag_ns, awake_ns)


def _answers(spans: list[Span]) -> tuple[dict[Any, int], dict[Any, list[Span]]]:
    """(hold -> call of the last renewal or release of it answered ok, hold -> its renewals)."""
    confirmed: dict[Any, int] = {}
    renewals: dict[Any, list[Span]] = {}
    for span in spans:
        if span.hold is None or span.f not in (RENEW, RELEASE):
            continue
        if span.ok:
            confirmed[span.hold] = max(confirmed.get(span.hold, 0), span.call)
        if span.f == RENEW:
            renewals.setdefault(span.hold, []).append(span)
    return confirmed, renewals


def _lease_end(window: Window, renewals: dict[Any, list[Span]], ttl_ns: int | None) -> int | None:
    """When the lease was over for certain, None where nobody can say."""
    lasts = window.acquire.ttl if window.acquire.ttl is not None else ttl_ns
    if lasts is None:
        return None
    end_ns = window.start + lasts
    for span in renewals.get(window.hold, ()):
        if span.call < window.end and span.seen is None:
            if not span.ok:
                return None  # it may have taken effect at any later time
            end_ns = max(end_ns, span.ret + (span.ttl if span.ttl is not None else lasts))
    return end_ns


def figures(found: list[Loss], bound_ms: int | None) -> dict[str, Any]:
    """The figures that reports and the survey show."""
    told = Counter(loss.window.why or "end of history" for loss in found)
    return {
        "exact": True,
        "why": "a lower bound read off the history",
        "losses": len(found),
        "lag_ms_max": max((loss.lag_ns for loss in found), default=0) / NS_PER_MS,
        "awake_lag_ms_max": max((loss.awake_ns for loss in found), default=0) / NS_PER_MS,
        "told_by": dict(sorted(told.items())),
        "unaware": sum(count for why, count in told.items() if why in UNAWARE),
        "bound_ms": bound_ms,
    }


def _anomaly(loss: Loss, bound_ms: int) -> Anomaly:
    window = loss.window
    ops = [window.acquire.event, *([] if loss.proof is None else [loss.proof])]
    ops += [] if window.closer is None else [window.closer]
    why = "its lease was over" if loss.proof is None else "somebody else had it"
    return Anomaly(
        kind="late-to-know",
        side=Side.CLIENT,
        ops=list(dict.fromkeys(ops)),
        says=at_key(window.acquire.key)
        + f"{window.acquire.who} believed until {ms(window.end)}, {ms(loss.awake_ns)} awake after "
        f"the lock was gone ({why} by {ms(loss.gone_ns)}); the bound is {bound_ms} ms",
        key=window.acquire.key,
        legal_if=f"it had stopped believing by {ms(loss.gone_ns + bound_ms * NS_PER_MS)}",
    )
