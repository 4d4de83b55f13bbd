"""mute: the client hears the server but is not heard; bytes are kept until the heal.

A one-way partition.  A renewal never arrives while the answers to earlier requests still do; at
the heal the server gets everything at once, late.  Proof: the proxy lists the toxic, an echo
through the link stays silent, the server's count of echoes did not move, and it answers directly.

Trap: the count is read before and after the echo through the link and *before* the direct echo,
which moves it.
"""

from __future__ import annotations

from typing import ClassVar

from harness.core import limits
from harness.core.protocols import Direction, Evidence, Link, World
from nemesis.base import carries, server_of
from nemesis.counting import counted_echo
from nemesis.jam import Jam


class Mute(Jam):
    """Holds back what the client says."""

    kind = "mute"
    summary = "holds back what a client says; it still hears the server"
    directions: ClassVar[tuple[Direction, ...]] = ("upstream",)
    alone: ClassVar[bool] = True
    between_nodes: ClassVar[bool] = False

    def _bit(self, world: World, link: Link) -> Evidence:
        node = server_of(world, link)
        listed = carries(link, "latency", *self.directions)
        probe, arrived = counted_echo(link, node)
        direct = node.probe(limits.PROBE_TIMEOUT_MS)
        return Evidence(
            listed and probe.outcome == "silent" and arrived == 0 and direct.outcome == "answered",
            f"echo {probe.outcome}, {arrived} of 1 requests arrived, direct echo {direct.outcome}",
            {"echo": probe.outcome, "arrived": arrived, "direct": direct.outcome}
            | {"listed": listed},
        )
