"""slow: a link carries so few bytes a second that commands of a lock take their time.

Proof: the proxy lists the limits, the quickest of several echoes through the link takes at least
as long as its bytes need at that rate, and a direct one no more than half of that.

Traps: a command of a lock is about a hundred bytes, so a rate that hurts is a few kilobytes a
second; above ``rate_kb_s`` = 10 nothing of a lock would notice, and no echo could prove anything,
so more is refused.  Bytes queue up: who sends more than the rate waits longer each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from harness.core import limits
from harness.core.clock import NS_PER_MS
from harness.core.protocols import Direction, Evidence, Link, Probe, World
from nemesis.base import LinkFault, carries, describe, server_of
from nemesis.params import Parameter

DIRECTIONS: tuple[Direction, ...] = ("upstream", "downstream")
ECHO_BYTES_MIN = 10  # an echo is at least this long, each way, in every tongue spoken here
LOOKS = 3  # the quickest counts, so that a busy machine is not taken for a slow link


class Slow(LinkFault):
    """Limits the bandwidth of links, each way."""

    kind = "slow"
    summary = "limits a link to a few kilobytes a second, each way"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("rate_kb_s", int, "kB/s", 1, "bytes let through, each way", 1, 10),
    )

    def _apply(self, link: Link) -> None:
        for direction in DIRECTIONS:
            link.add_toxic("bandwidth", direction, {"rate": self.params["rate_kb_s"]})

    def _release(self, link: Link) -> None:
        for direction in DIRECTIONS:
            link.remove_toxic("bandwidth", direction)

    def _bit(self, world: World, link: Link) -> Evidence:
        # 1 kB/s is one byte a millisecond.
        least_ns = 2 * ECHO_BYTES_MIN * NS_PER_MS // self.params["rate_kb_s"]
        node = server_of(world, link)
        listed = carries(link, "bandwidth", *DIRECTIONS)
        # Late is what it should be, and some tongues need half a thousand bytes for an echo.
        slow_ns = _quickest(link.probe(limits.EVIDENCE_TIMEOUT_MS) for _ in range(LOOKS))
        direct_ns = _quickest(node.probe(limits.PROBE_TIMEOUT_MS) for _ in range(LOOKS))
        late = slow_ns is not None and slow_ns >= least_ns
        prompt = late and direct_ns is not None and 2 * direct_ns <= (slow_ns or 0)
        return Evidence(
            listed and late and prompt,
            f"link {describe(link.toxics())}, echo {_time(slow_ns)}, "
            f"direct echo {_time(direct_ns)}",
            {"rtt_ns": slow_ns, "direct_rtt_ns": direct_ns, "listed": listed},
        )


def _quickest(probes: Iterable[Probe]) -> int | None:
    """Shortest round trip, or None if any echo was lost."""
    times = [probe.rtt_ns for probe in probes]
    known = [time for time in times if time is not None]
    return min(known) if len(known) == len(times) else None


def _time(rtt_ns: int | None) -> str:
    return "lost" if rtt_ns is None else f"took {rtt_ns / NS_PER_MS:.1f} ms"
