"""Virtual time: a heap of events and a clock that jumps from one to the next.

    clock = SimClock()
    clock.at(5_000, print, "five microseconds")
    clock.run(10_000, [])          # prints, and now() is 10_000

Everything in a simulated world is an event here, so whoever waits on this clock (a fault that
looks for its evidence, the final phase) makes the world go on.  Events of one instant happen in
the order in which they were planned; that, and named streams of chance, make a run repeatable
byte by byte.

Trap: ``sleep_until`` runs events, so never call it from inside one.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sized
from typing import Any

from harness.core.clock import VirtualClock
from harness.core.errors import HarnessError

Event = tuple[int, int, Callable[[Any], None], Any]

_NOTHING: tuple[()] = ()


class SimClock(VirtualClock):
    """The clock of one simulated world and its pending events.

    ``heap`` and ``number`` are open to the hot paths of this package, which push
    ``(time_ns, number(), call, argument)`` themselves.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self.heap: list[Event] = []
        self.number = itertools.count(1).__next__
        self._running = False

    def at(self, time_ns: int, call: Callable[[Any], None], argument: Any = None) -> None:
        """Plans ``call(argument)`` for ``time_ns`` (at once, if that has passed)."""
        time_ns = max(time_ns, self._now_ns)
        heapq.heappush(self.heap, (time_ns, self.number(), call, argument))

    def sleep_until(self, deadline_ns: int) -> None:
        """Lets the world go on until ``deadline_ns``."""
        self.run(deadline_ns, _NOTHING)

    def run(self, deadline_ns: int, outbox: Sized) -> None:
        """Carries out events up to and including ``deadline_ns``.

        Stops early when ``outbox`` has something in it and the instant is over; else the clock
        ends at ``deadline_ns``.
        """
        if self._running:
            raise HarnessError("the simulated clock was asked to wait from inside an event")
        heap, pop = self.heap, heapq.heappop
        self._running = True
        try:
            while heap and heap[0][0] <= deadline_ns:
                self._now_ns, _, call, argument = pop(heap)
                call(argument)
                if outbox and not (heap and heap[0][0] == self._now_ns):
                    return
            self._now_ns = max(self._now_ns, deadline_ns)
        finally:
            self._running = False
