"""Figures of waiting, in constant memory: bypasses, waits, shares.

Waits go to a histogram of powers of two in ns, so quantiles are right to a factor of two; counts
and the longest wait are exact.  Bypasses are counted among the last RECENT_MAX grants of a key.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from checkers.fairness import jain
from checkers.monitors.span import NS_PER_MS
from checkers.online_keys import Hold

_SHARES_MAX = 1 << 16  # processes counted one by one; more are put together by remainder


class Waits:
    """Counts of one stream."""

    def __init__(self) -> None:
        self.grants = self.refusals = self.passed = self.passed_max = 0
        self.longest_ns = 0
        self.histogram: Counter[int] = Counter()
        self.shares: Counter[int | str] = Counter()

    def granted(self, holds: list[Hold]) -> None:
        """A batch of grants: how long they waited, and whose they were."""
        if holds:
            waits_ns = [hold.a - hold.call for hold in holds]
            self.grants += len(holds)
            self.longest_ns = max(self.longest_ns, *waits_ns)
            self.histogram.update(map(int.bit_length, waits_ns))
            self.shares.update([hold.process for hold in holds])
            if len(self.shares) > _SHARES_MAX:
                self._merge()

    def passed_by(self, recent: deque[Hold], call: int) -> None:
        """A grant asked for at ``call``, after others: how many of them had been asked later."""
        passed = 0
        for other in reversed(recent):  # in order of their answers
            if other.a <= call:
                break
            if other.call > call:
                passed += 1
        self.passed += passed
        if passed > self.passed_max:
            self.passed_max = passed

    def _merge(self) -> None:
        merged: Counter[int | str] = Counter()
        for process, count in self.shares.items():
            name = process % 1024 if isinstance(process, int) else process
            merged[name] = merged.get(name, 0) + count
        self.shares = merged

    def figures(self, workers: int) -> dict[str, Any]:
        """All figures; ``workers``: how many processes run at a time (0: not known)."""
        shares: dict[int | str, int] = {}
        for process, count in self.shares.items():
            name = process % workers if workers and isinstance(process, int) else process
            shares[name] = shares.get(name, 0) + count
        return {
            "grants": self.grants,
            "refusals": self.refusals,
            "bypasses": self.passed,
            "bypass_max": self.passed_max,
            "jain": round(jain(list(shares.values())), 4),
            "wait_ms_max": round(self.longest_ns / NS_PER_MS, 3),
            "wait_ms_p50_at_most": self._quantile(0.5),
            "wait_ms_p99_at_most": self._quantile(0.99),
        }

    def _quantile(self, q: float) -> float:
        left = q * self.grants
        for bits in sorted(self.histogram):
            left -= self.histogram[bits]
            if left <= 0:
                return round((1 << bits) / NS_PER_MS, 3)
        return 0.0
