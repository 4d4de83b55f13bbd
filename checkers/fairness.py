"""fairness: who had to wait, how long, and was passed by how often.  Figures, apart from safety.

    bypass         grants to others who had asked later, while this one waited
    jain           Jain's index of grants per worker: 1 = equal shares, 1/n = one takes all
    starvation     longest wait against the median
    attempts       acquire attempts per grant, and how many of them came in step (thundering herd)
    permits_leaked holds that nobody ended, seen as keys that stayed taken at the end
    orphans        grants of unknown outcome that were never confirmed or released

Jain, Chiu, Hawe: "A quantitative measure of fairness", DEC-TR-301, 1984.  Synchrony: the share of
attempts within SYNCHRONY_NS of another worker's attempt on the same key, beyond what the same rate
would give by chance; near 1 means that waiters wake up together.

Trap: it never says FALSE, since no lock here promises fairness; UNKNOWN if there was no contention.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import pairwise
from math import exp
from statistics import median
from typing import Any

from checkers.models.base import ACQUIRE, RELEASE
from checkers.monitors.span import INF, Span
from checkers.stats import quantiles_ms
from checkers.view import View
from harness.core.clock import NS_PER_S
from harness.core.history import History
from harness.core.protocols import CheckContext
from harness.core.result import Result, Valid

SYNCHRONY_NS = 1_000_000  # closer than this is "at the same time": a wake-up on loopback takes less


class Fairness:
    """Waiting, bypassing, sharing."""

    name = "fairness"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        if not view.grants or not view.contended:
            return Result(
                checker=self.name,
                valid=Valid.UNKNOWN,
                says="no lock was granted"
                if not view.grants
                else "no two workers ever wanted the same lock at the same time",
                safety=self.safety,
            )
        stats = figures(view)
        return Result(
            checker=self.name,
            valid=Valid.TRUE,
            says=f"passed by {stats['bypass_max']} times at most, longest wait "
            f"{stats['wait_ms'].get('max', 0)} ms (median {stats['wait_ms'].get('p50', 0)} ms), "
            f"Jain index {stats['jain']}, {stats['attempts_per_grant']} attempts per grant",
            stats=stats,
            safety=self.safety,
        )


def figures(view: View) -> dict[str, Any]:
    """All figures of a run."""
    grants = view.grants
    acquires = [s for spans in view.locks.values() for s in spans if s.f == ACQUIRE]
    passed = [n for spans in view.locks.values() for n in bypasses(spans)]
    workers = {view.worker(s.process) if s.process is not None else None for s in acquires}
    shares = Counter(view.worker(grant.process) for grant in grants)
    waits = [grant.ret - grant.call for grant in grants]
    middle = median(waits)
    span_ns = max(1, view.history.end_ns - min(s.call for s in acquires))
    locks = view.judged if view.bound else view.locks  # a connection's end leaves no hold behind
    leaks = [leaked(spans, view.ttl_ns, view.history.end_ns) for spans in locks.values()]
    changes = sum(_changes(spans) for spans in view.locks.values())
    return {
        "exact": True,
        "why": "read off the history",
        "bypass_max": max(passed, default=0),
        "bypass_mean": round(sum(passed) / len(passed), 2) if passed else 0.0,
        "jain": round(jain([shares[worker] for worker in workers]), 4),
        "grants_per_worker": {str(w): shares[w] for w in sorted(workers, key=str)},
        "wait_ms": quantiles_ms(waits),
        "starvation": round(max(waits) / middle, 1) if middle else None,
        "attempts": len(acquires),
        "attempts_per_grant": round(len(acquires) / len(grants), 2),
        "synchrony": round(synchrony(view.locks.values()), 4),
        "holder_changes_per_minute": round(changes * 60 * NS_PER_S / span_ns, 1),
        "permits_leaked": sum(leak for leak, _ in leaks),
        "orphans": sum(orphans for _, orphans in leaks),
    }


def bypasses(spans: list[Span]) -> list[int]:
    """For each grant of a key: how many others, asked for later, were granted while it waited.

    O(n log n): a grant passes a waiter by iff its call is later and its return earlier, so these
    are inversions between the order of calls and the order of returns.
    """
    granted = sorted((s for s in spans if s.f == ACQUIRE and s.ok), key=lambda s: (s.ret, s.call))
    calls = sorted({s.call for s in granted})
    tree = [0] * (len(calls) + 1)
    found = []
    for number, span in enumerate(granted):
        place = i = bisect_right(calls, span.call)
        earlier = 0
        while i:
            earlier += tree[i]
            i -= i & -i
        found.append(number - earlier)
        while place < len(tree):
            tree[place] += 1
            place += place & -place
    return found


def jain(shares: list[int]) -> float:
    """Jain's fairness index; 1.0 for no shares at all."""
    squares = sum(x * x for x in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def synchrony(keys: Any) -> float:
    """How much more often than by chance attempts of different processes come together (0 .. 1)."""
    together, expected, count = 0, 0.0, 0
    for spans in keys:
        attempts = sorted((s.call, str(s.process)) for s in spans if s.f == ACQUIRE)
        times = [call for call, _ in attempts]
        if len(times) < 2 or times[-1] == times[0]:
            continue
        rate = len(times) / (times[-1] - times[0])
        count += len(times)
        expected += len(times) * (1 - exp(-2 * SYNCHRONY_NS * rate))
        for i, (call, process) in enumerate(attempts):
            j = bisect_left(times, call - SYNCHRONY_NS)
            while j < len(times) and times[j] <= call + SYNCHRONY_NS:
                if j != i and attempts[j][1] != process:
                    together += 1
                    break
                j += 1
    if not count or expected >= count:
        return 0.0
    return max(0.0, (together - expected) / (count - expected))


def leaked(spans: list[Span], ttl_ns: int | None, end_ns: int) -> tuple[int, int]:
    """(holds that nobody ended and no lease ends, unknown grants never heard of again)."""
    released = {s.hold if s.hold is not None else s.owner for s in spans if s.f == RELEASE}
    leaks = orphans = 0
    for span in spans:
        if span.f != ACQUIRE or span.seen is not None:
            continue
        lasts = span.ttl if span.ttl is not None else ttl_ns
        over = INF if lasts is None else span.call + lasts
        if (span.hold if span.hold is not None else span.owner) in released or over < end_ns:
            continue
        if span.ok:
            leaks += 1
        else:
            orphans += 1
    return leaks, orphans


def _changes(spans: list[Span]) -> int:
    """How often the holder of a key changed from one process to another."""
    granted = sorted((s for s in spans if s.f == ACQUIRE and s.ok), key=lambda s: s.ret)
    return sum(1 for x, y in pairwise(granted) if x.process != y.process)


__all__ = ["Fairness", "bypasses", "figures", "jain", "leaked", "synchrony"]
