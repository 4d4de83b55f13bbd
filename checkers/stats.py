"""stats: how much was done, how fast, with which outcome.  It judges nothing.

    f -> counts of ok, fail, info, open; latency quantiles in ms; grants, waits, rate per second

Trap: latency of operations whose outcome is unknown is not counted; they have no end.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from checkers.monitors.span import NS_PER_MS
from checkers.view import View
from harness.core.clock import NS_PER_S
from harness.core.history import History, Type
from harness.core.protocols import CheckContext
from harness.core.result import Result, Valid

QUANTILES = (0.5, 0.9, 0.99, 1.0)


class Stats:
    """Counts and latencies."""

    name = "stats"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        ops = history.intervals()
        if not ops:
            return Result(
                checker=self.name,
                valid=Valid.UNKNOWN,
                says="the history has no operation of a client",
                safety=self.safety,
            )
        view = View(history, context)
        counts: dict[str, Counter[str]] = {}
        latencies: dict[str, list[int]] = {}
        for op in ops:
            f = op.invoke.f
            outcome = "open" if op.complete is None else str(op.outcome)
            counts.setdefault(f, Counter())[outcome] += 1
            if op.outcome != Type.INFO and op.complete is not None:
                latencies.setdefault(f, []).append(op.complete.time - op.call_ns)
        span_ns = max(1, history.end_ns - ops[0].call_ns)
        waits = [grant.ret - grant.call for grant in view.grants]
        rate = len(ops) * NS_PER_S / span_ns
        stats: dict[str, Any] = {
            "exact": True,
            "why": "counted",
            "operations": len(ops),
            "duration_s": span_ns / NS_PER_S,
            "operations_per_s": round(rate, 1),
            "counts": {f: dict(found) for f, found in sorted(counts.items())},
            "latency_ms": {f: quantiles_ms(found) for f, found in sorted(latencies.items())},
            "grants": len(waits),
            "grants_per_s": round(len(waits) * NS_PER_S / span_ns, 1),
            "wait_ms": quantiles_ms(waits),
            "torn": history.torn,
        }
        return Result(
            checker=self.name,
            valid=Valid.TRUE,
            says=f"{len(ops)} operations in {span_ns / NS_PER_S:.1f} s ({rate:.0f} a second), "
            f"{len(waits)} grants",
            stats=stats,
            safety=self.safety,
        )


def quantiles_ms(found_ns: list[int]) -> dict[str, float]:
    """p50, p90, p99 and max in ms; empty if there is nothing."""
    if not found_ns:
        return {}
    found_ns = sorted(found_ns)
    last = len(found_ns) - 1
    return {
        "max" if q == 1.0 else f"p{round(q * 100)}": round(found_ns[round(q * last)] / NS_PER_MS, 3)
        for q in QUANTILES
    }
