"""Figures of waiting, in constant memory: bypasses, waits, shares.

Waits go to a histogram of powers of two in ns, so quantiles are right to a factor of two; counts
and the longest wait are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkers.fairness import jain
from checkers.models.base import ACQUIRE, LOCK_F
from checkers.monitors.span import NS_PER_MS
from checkers.online_keys import Line

_SHARES_MAX = 1 << 16  # processes counted one by one; more are put together by remainder


def _waits(line: Line) -> bool:
    return LOCK_F.get(line.f) == ACQUIRE


class Waits:
    """Counts of one stream."""

    def __init__(self) -> None:
        self.grants = self.refusals = self.passed = self.passed_max = 0
        self.longest_ns = 0
        self.histogram = [0] * 64
        self.shares: dict[int | str, int] = {}
        self.waiting: dict[int, int] = {}

    def granted(self, invoke: Line, now: int, pending: Mapping[int | str, Line | None]) -> None:
        """A grant: how long it waited, and whom it passed by."""
        self.grants += 1
        call, key = invoke.time, invoke.key
        wait_ns = now - call
        if wait_ns > self.longest_ns:
            self.longest_ns = wait_ns
        self.histogram[wait_ns.bit_length()] += 1
        process = invoke.process
        self.shares[process] = self.shares.get(process, 0) + 1
        for other in pending.values():
            if other is not None and other.key == key and other.time < call and _waits(other):
                self.passed += 1
                passed = other.floor + 1 if other.floor > 0 else 1
                other.floor = passed  # a waiter's own count; nobody else uses it on an acquire
                if passed > self.passed_max:
                    self.passed_max = passed
        if len(self.shares) > _SHARES_MAX:
            self._merge()

    def _merge(self) -> None:
        merged: dict[int | str, int] = {}
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
        for bits, count in enumerate(self.histogram):
            left -= count
            if left <= 0:
                return round((1 << bits) / NS_PER_MS, 3)
        return 0.0
