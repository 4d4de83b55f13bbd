"""clock-skew: makes the wall clock of a server run fast or slow.

A lease on a fast server is over before its holder thinks so.  Proof: the server's own TIME drifts
away at the rate asked for.

Example: ``kind = "clock-skew"``, ``params = { rate_ppm = 900000 }``: 1.9 times the true rate.
"""

from __future__ import annotations

from typing import ClassVar

from nemesis.clock import SKEW_PARAMETERS, NodeClockFault
from nemesis.params import Parameter


class ClockSkew(NodeClockFault):
    """Sets clocks to another rate."""

    kind = "clock-skew"
    summary = "makes the wall clock of a server run fast or slow"
    parameters: ClassVar[tuple[Parameter, ...]] = SKEW_PARAMETERS
