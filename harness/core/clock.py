"""Time as an argument: nobody else in the project reads a clock or sleeps.

All times are integer nanoseconds of CLOCK_MONOTONIC.  That clock is one for all processes of a
machine and is untouched by wall-clock faults, so harness and workers can compare their stamps.
"""

from __future__ import annotations

import time
from typing import Protocol

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


class Clock(Protocol):
    """What reads time and waits; ``now`` in ns, ``sleep_until`` takes a reading of ``now``."""

    def now(self) -> int: ...

    def sleep_until(self, deadline_ns: int) -> None: ...


class MonotonicClock:
    """The real clock (CLOCK_MONOTONIC)."""

    def now(self) -> int:
        return time.monotonic_ns()

    def sleep_until(self, deadline_ns: int) -> None:
        left_ns = deadline_ns - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / NS_PER_S)


class VirtualClock:
    """A clock that jumps: waiting costs nothing.  Starts at 0 and never goes back."""

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns

    def now(self) -> int:
        return self._now_ns

    def sleep_until(self, deadline_ns: int) -> None:
        self._now_ns = max(self._now_ns, deadline_ns)


def ms(milliseconds: float) -> int:
    """Milliseconds (as scenarios give them) in integer nanoseconds (as data holds them)."""
    return round(milliseconds * NS_PER_MS)
