"""clock-jump: steps the wall clock of a server, forward or backward.

A Redis lease ends by the server's wall clock: one step forward ends every lock at once, one step
back makes it outlive its TTL.  Proof: the server's own TIME is off by that much.

Example: ``kind = "clock-jump"``, ``target = "primary"``, ``params = { offset_ms = 10000 }``.
"""

from __future__ import annotations

from typing import ClassVar

from nemesis.clock import JUMP_PARAMETERS, NodeClockFault
from nemesis.params import Parameter


class ClockJump(NodeClockFault):
    """Sets clocks off by a fixed time."""

    kind = "clock-jump"
    summary = "steps the wall clock of a server, forward or backward"
    parameters: ClassVar[tuple[Parameter, ...]] = JUMP_PARAMETERS
