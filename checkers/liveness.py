"""liveness: after the last fault was over, did some waiter get the lock within the bound?

    recovery_ms     from the end of the last fault to the first grant after it
    stuck-waiter    an acquire that was still pending at the end, for longer than the bound
    no-recovery     somebody wanted the lock, for longer than the bound, and nobody got it

Apart from safety: a lock that nobody gets is useless, not dangerous.

Traps.  A fault that never healed makes the question meaningless (UNKNOWN), and so does a run that
ended before the bound was over.  Without a bound only the figures are given.
"""

from __future__ import annotations

from typing import Any

from checkers.models.base import ACQUIRE
from checkers.monitors.span import INF, NS_PER_MS, Span, at_key, ms
from checkers.view import View
from harness.core.history import History
from harness.core.limits import ANOMALIES_MAX
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result, Valid


class Liveness:
    """Recovery after faults, and waiters that are stuck."""

    name = "liveness"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        acquires = sorted(
            (span for spans in view.locks.values() for span in spans if span.f == ACQUIRE),
            key=lambda span: span.call,
        )
        unhealed = [f for f in context.faults if f.end_ns is None]
        if not acquires:
            return self._unknown("nobody asked for a lock, so nothing was shown", {})
        if not view.grants:
            return self._unknown(
                "no lock was ever granted, so nothing was shown",
                {"acquires": len(acquires), "grants": 0},
            )
        if unhealed:
            return self._unknown(
                f"fault {unhealed[0].kind} never ended, so nothing could recover", {}
            )
        harmed = [*context.faults, *view.crashes]
        healed_ns = max((f.end_ns or 0 for f in harmed), default=0)
        return self._judge(view, acquires, healed_ns, harmed=bool(harmed))

    def _unknown(self, says: str, stats: dict[str, Any]) -> Result:
        return Result(
            checker=self.name, valid=Valid.UNKNOWN, says=says, stats=stats, safety=self.safety
        )

    def _judge(self, view: View, acquires: list[Span], healed_ns: int, *, harmed: bool) -> Result:
        bound_ms = view.context.recovery_ms_max
        bound_ns = INF if bound_ms is None else bound_ms * NS_PER_MS
        end_ns = view.history.end_ns
        after = [span for span in view.grants if span.ret > healed_ns]
        wanted = [span for span in acquires if span.ret > healed_ns]
        first = after[0] if after else None
        since_ns = healed_ns
        if wanted:
            since_ns = max(healed_ns, min(span.call for span in wanted))
        stuck = [
            span
            for span in acquires
            if span.done < 0 and end_ns - max(span.call, healed_ns) > bound_ns
        ]
        stats: dict[str, Any] = {
            "exact": True,
            "why": "read off the history",
            "healed_ms": healed_ns / NS_PER_MS,
            "grants_after": len(after),
            "acquires_after": len(wanted),
            "recovery_ms": None if first is None else (first.ret - since_ns) / NS_PER_MS,
            "bound_ms": bound_ms,
            "pending_at_end": sum(1 for span in acquires if span.done < 0),
            "stuck": len(stuck),
        }
        anomalies = [_stuck(span, max(span.call, healed_ns), end_ns) for span in stuck]
        recovery_ns = (end_ns if first is None else first.ret) - since_ns
        if wanted and recovery_ns > bound_ns:
            anomalies.insert(0, _late(wanted[0], first, recovery_ns, healed_ns, bound_ms or 0))
        if anomalies:
            valid, says = Valid.FALSE, anomalies[0].says
        elif not wanted or first is None:
            valid = Valid.UNKNOWN
            says = (
                f"nobody wanted the lock after {ms(healed_ns)}, when the last fault was over"
                if not wanted
                else f"the run ended {ms(end_ns - since_ns)} after the last fault: too early to "
                "tell whether anybody gets the lock"
            )
        else:
            valid = Valid.TRUE
            says = f"first grant {ms(recovery_ns)} after the last fault was over"
            if not harmed:
                says = f"no fault to recover from; first grant after {ms(recovery_ns)}"
        return Result(
            checker=self.name,
            valid=valid,
            says=says,
            anomalies=anomalies[:ANOMALIES_MAX],
            stats=stats,
            safety=self.safety,
        )


def _stuck(span: Span, since_ns: int, end_ns: int) -> Anomaly:
    return Anomaly(
        kind="stuck-waiter",
        ops=[span.invoke],
        says=f"{at_key(span.key)}{span.who} asked for the lock at {ms(span.call)} and had no "
        f"answer by the end, {ms(end_ns - since_ns)} later",
        key=span.key,
        legal_if="it had been granted or refused within the bound",
    )


def _late(
    waiter: Span, first: Span | None, recovery_ns: int, healed_ns: int, bound_ms: int
) -> Anomaly:
    got = "nobody got the lock" if first is None else f"{first.who} got the lock only"
    return Anomaly(
        kind="no-recovery" if first is None else "slow-recovery",
        ops=[waiter.invoke] + ([] if first is None else [first.event]),
        says=f"the last fault was over at {ms(healed_ns)}, but {got} within {ms(recovery_ns)}; the "
        f"bound is {bound_ms} ms"
        if first is None
        else f"the last fault was over at {ms(healed_ns)}, but {got} after {ms(recovery_ns)}; the "
        f"bound is {bound_ms} ms",
        key=waiter.key,
        legal_if=f"somebody had got the lock within {bound_ms} ms",
    )


__all__ = ["Liveness"]
