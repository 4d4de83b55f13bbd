"""Figures of waiting, in constant memory: bypasses, waits, shares.

Waits go to a histogram of powers of two in ns, so quantiles are right to a factor of two; counts
and the longest wait are exact.  Bypasses are counted among the last RECENT_MAX grants of a key.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from checkers.fairness import jain
from checkers.monitors.span import NS_PER_MS

_SHARES_MAX = 1 << 16  # processes counted one by one; more are put together by remainder


class Waits:
    """Counts of one stream."""

    def __init__(self) -> None:
        self.grants = self.refusals = self.passed = self.passed_max = 0
        self.longest_ns = 0
        self.waited: list[int] = []  # ns that grants took, and whose they were: not counted yet
        self.served: list[int | str] = []
        self.histogram: Counter[int] = Counter()
        self.shares: Counter[int | str] = Counter()

    def count(self, least: int = 1) -> None:
        """Takes up what was noted of grants, if there are so many: together they cost less."""
        waits_ns = self.waited
        if len(waits_ns) >= least:
            self.grants += len(waits_ns)
            self.longest_ns = max(self.longest_ns, *waits_ns)
            self.histogram.update(map(int.bit_length, waits_ns))
            self.shares.update(self.served)
            waits_ns.clear()
            self.served.clear()
            if len(self.shares) > _SHARES_MAX:
                self._merge()

    def passed_by(self, recent: deque[tuple[int, int]], call: int) -> None:
        """A grant asked for at ``call``, after others: how many of them had been asked later."""
        passed = 0
        for other_call, other_a in reversed(recent):  # in order of their answers
            if other_a <= call:
                break
            if other_call > call:
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
