"""deafen: the client is heard but does not hear; answers are kept until the heal.

The other one-way partition.  A renewal arrives and counts, and the holder gives up a lock that it
still has; an acquire is granted to somebody who does not know.  Proof: the proxy lists the toxic,
an echo through the link stays silent although the server's count of echoes went up.

Trap: unlike ``cut-reply`` nothing is lost: every answer arrives at the heal, late.
"""

from __future__ import annotations

from typing import ClassVar

from harness.core.protocols import Direction, Evidence, Link, World
from nemesis.base import carries, server_of
from nemesis.counting import counted_echo
from nemesis.jam import Jam


class Deafen(Jam):
    """Holds back what the server says."""

    kind = "deafen"
    summary = "holds back what the server says to a client; it is still heard"
    directions: ClassVar[tuple[Direction, ...]] = ("downstream",)
    alone: ClassVar[bool] = True
    between_nodes: ClassVar[bool] = False

    def _bit(self, world: World, link: Link) -> Evidence:
        node = server_of(world, link)
        listed = carries(link, "latency", *self.directions)
        probe, arrived = counted_echo(link, node)
        return Evidence(
            listed and probe.outcome == "silent" and arrived >= 1,
            f"echo {probe.outcome}, {arrived} of 1 requests arrived",
            {"echo": probe.outcome, "arrived": arrived, "listed": listed},
        )
