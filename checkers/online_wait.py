"""Figures of waiting, in constant memory: bypasses, waits, shares.

Waits go to a histogram of powers of two in ns, so quantiles are right to a factor of two; counts
and the longest wait are exact.  Bypasses are counted among the last RECENT_MAX grants of a key.
Shares are those of workers: processes that replaced each other after unknown outcomes are one.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any
from zlib import crc32

from checkers.fairness import jain
from checkers.monitors.span import NS_PER_MS

_SHARES_MAX = 1 << 10  # processes that are counted before it is looked who replaced whom
PROCESSES_MAX = 1 << 16  # workers; of more the shares are put together as they come


class Waits:
    """Counts of one stream."""

    def __init__(self) -> None:
        self.grants = self.refusals = self.passed = self.passed_max = 0
        self.longest_ns = 0
        self.waited: list[int] = []  # ns that grants took, and whose they were: not counted yet
        self.served: list[int | str] = []
        self.histogram: Counter[int] = Counter()
        self.shares: Counter[int | str] = Counter()
        self.shares_max = _SHARES_MAX

    def count(self, least: int = 1, workers: int = 0) -> None:
        """Takes up what was noted of grants, if there are so many: together they cost less.

        workers: how many processes run at a time; 0: not known (yet)."""
        waits_ns = self.waited
        if len(waits_ns) >= least:
            self.grants += len(waits_ns)
            self.longest_ns = max(self.longest_ns, *waits_ns)
            self.histogram.update(map(int.bit_length, waits_ns))
            self.shares.update(self.served)
            waits_ns.clear()
            self.served.clear()
            if len(self.shares) > self.shares_max:
                self._merge(workers)

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

    def _merge(self, workers: int) -> None:
        """Puts processes together: those that replaced each other, else (or if they have names and
        are too many) as they come, which makes shares look more even than they are."""
        shares = self._by_worker(workers)
        if len(shares) > PROCESSES_MAX:
            merged: Counter[int | str] = Counter()
            for process, count in shares.items():
                number = process if isinstance(process, int) else crc32(process.encode())
                merged[number % (workers or _SHARES_MAX)] += count
            shares = merged
        self.shares, self.shares_max = shares, max(_SHARES_MAX, 2 * len(shares))

    def _by_worker(self, workers: int) -> Counter[int | str]:
        """The shares of workers: one's processes have the same remainder."""
        found: Counter[int | str] = Counter()
        for process, count in self.shares.items():
            found[process % workers if workers and isinstance(process, int) else process] += count
        return found

    def figures(self, workers: int) -> dict[str, Any]:
        """All figures; ``workers``: how many processes run at a time (0: not known)."""
        shares = self._by_worker(workers)
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
