"""worker-clock-jump: steps the wall clock of a client, forward or backward.

A client that computes how long its lock is still good by the wall clock gets it wrong: backward, it
believes too long.  Proof: a witness under the same shim reads the clock; that the client looked
at all is counted.

Trap: a library that uses the monotonic clock only does not notice: that is a result.
"""

from __future__ import annotations

from typing import ClassVar

from nemesis.clock import JUMP_PARAMETERS, WorkerClockFault
from nemesis.params import Parameter


class WorkerClockJump(WorkerClockFault):
    """Sets clocks off by a fixed time."""

    kind = "worker-clock-jump"
    summary = "steps the wall clock of a client, forward or backward"
    parameters: ClassVar[tuple[Parameter, ...]] = JUMP_PARAMETERS
