"""Limits of a search: seconds, bytes and configurations.  Reaching one is UNKNOWN, not an error.

The clock is an argument, so that tests need not wait.  It is asked every few hundred
configurations, not at each; models whose ``step`` takes milliseconds overrun by that much.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkers.engine.seen import Seen

Clock = Callable[[], float]
CHECK_EVERY = 256


class Budget:
    """``pause(nodes, ...)`` gives the node count at which to ask again, or -1 for "stop now"."""

    def __init__(
        self, *, seconds: float, memory_bytes: int, nodes_max: int, clock: Clock = time.monotonic
    ) -> None:
        self.ends_s = clock() + seconds
        self.memory_bytes = memory_bytes
        self.nodes_max = nodes_max
        self.clock = clock
        self.first_check = min(CHECK_EVERY, nodes_max)
        self.reason = ""

    def pause(self, nodes: int, seen: Seen) -> int:
        if nodes >= self.nodes_max:
            self.reason = f"{nodes} configurations"
        elif self.clock() >= self.ends_s:
            self.reason = "time"
        elif seen.bytes() >= self.memory_bytes:
            self.reason = "memory"
        else:
            return min(nodes + CHECK_EVERY, self.nodes_max)
        return -1
