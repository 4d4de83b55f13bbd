"""jam: both directions stand still; every byte is kept and delivered, in order, at the heal.

A network partition as TCP sees it, and the way to late delivery: a write sent before the jam
arrives after it, when its sender's lease is long over.  Proof: the proxy lists both toxics, an
echo through the link stays silent, and the server answers directly.

Traps: a new connection still opens (the proxy accepts it), it just says nothing.  Not the
``timeout`` toxic: that throws bytes away and closes the connection at the heal, which is no
healed partition.
"""

from __future__ import annotations

from typing import ClassVar

from harness.core import limits
from harness.core.protocols import Direction, Evidence, Link, World
from nemesis.base import LinkFault, carries, describe, server_of

# Toxiproxy keeps what it delays and lets it go when the toxic is removed; an hour is "for ever".
HOLD_MS = limits.RUN_TIME_MS_MAX


class Jam(LinkFault):
    """Holds back all bytes of links, both ways."""

    kind = "jam"
    summary = "holds back all bytes of a link, both ways, and delivers them when it heals"
    directions: ClassVar[tuple[Direction, ...]] = ("upstream", "downstream")
    between_nodes: ClassVar[bool] = True

    def _apply(self, link: Link) -> None:
        for direction in self.directions:
            link.add_toxic("latency", direction, {"latency": HOLD_MS, "jitter": 0})

    def _release(self, link: Link) -> None:
        for direction in self.directions:
            link.remove_toxic("latency", direction)

    def _bit(self, world: World, link: Link) -> Evidence:
        listed = carries(link, "latency", *self.directions)
        probe = link.probe(limits.PROBE_TIMEOUT_MS)
        direct = server_of(world, link).probe(limits.PROBE_TIMEOUT_MS)
        return Evidence(
            listed and probe.outcome == "silent" and direct.outcome == "answered",
            f"link {describe(link.toxics())}, echo {probe.outcome}, direct echo {direct.outcome}",
            {"echo": probe.outcome, "direct": direct.outcome, "listed": listed},
        )
