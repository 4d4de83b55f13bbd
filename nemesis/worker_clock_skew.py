"""worker-clock-skew: makes the wall clock of a client run fast or slow.

A slow client renews too late.  Proof: a witness under the same shim sees the clock drift away at
the rate asked for.

Trap: as for worker-clock-jump, a library on the monotonic clock does not notice.
"""

from __future__ import annotations

from typing import ClassVar

from nemesis.clock import SKEW_PARAMETERS, WorkerClockFault
from nemesis.params import Parameter


class WorkerClockSkew(WorkerClockFault):
    """Sets clocks to another rate."""

    kind = "worker-clock-skew"
    summary = "makes the wall clock of a client run fast or slow"
    parameters: ClassVar[tuple[Parameter, ...]] = SKEW_PARAMETERS
