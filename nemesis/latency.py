"""latency: every answer (or request) takes longer, by a fixed time.

Proof: an echo through the link takes at least that much, and a direct one does not.

Traps: no jitter, because Toxiproxy's chance has no seed; with direction ``both`` the round trip
grows by twice the latency.
"""

from __future__ import annotations

from typing import ClassVar

from harness.core import limits
from harness.core.clock import ms
from harness.core.protocols import Direction, Evidence, Link, World
from nemesis.base import LinkFault, carries, describe, server_of
from nemesis.params import Parameter

_DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "upstream": ("upstream",),
    "downstream": ("downstream",),
    "both": ("upstream", "downstream"),
}


class Latency(LinkFault):
    """Delays all bytes of links by ``latency_ms`` per direction."""

    kind = "latency"
    summary = "delays every answer of the server by a fixed time"
    between_nodes: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "latency_ms", int, "ms", 100, "added to every byte, once per direction", 1, 60_000
        ),
        Parameter(
            "direction",
            str,
            "",
            "downstream",
            "what is delayed: requests (upstream), answers (downstream) or both",
            choices=tuple(_DIRECTIONS),
        ),
    )

    @property
    def _directions(self) -> tuple[Direction, ...]:
        return _DIRECTIONS[self.params["direction"]]

    def _apply(self, link: Link) -> None:
        for direction in self._directions:
            link.add_toxic(
                "latency", direction, {"latency": self.params["latency_ms"], "jitter": 0}
            )

    def _bit(self, world: World, link: Link) -> Evidence:
        added_ms = self.params["latency_ms"] * len(self._directions)
        listed = carries(link, "latency", *self._directions)
        probe = link.probe(added_ms + limits.PROBE_TIMEOUT_MS)
        direct = server_of(world, link).probe(limits.PROBE_TIMEOUT_MS)
        late = probe.rtt_ns is not None and probe.rtt_ns >= ms(added_ms)
        prompt = direct.rtt_ns is not None and direct.rtt_ns < ms(added_ms)
        return Evidence(
            listed and late and prompt,
            f"link {describe(link.toxics())}, echo {_time(probe.rtt_ns, probe.outcome)}, "
            f"direct echo {_time(direct.rtt_ns, direct.outcome)}",
            {"rtt_ns": probe.rtt_ns, "direct_rtt_ns": direct.rtt_ns, "listed": listed},
        )

    def _release(self, link: Link) -> None:
        for direction in self._directions:
            link.remove_toxic("latency", direction)


def _time(rtt_ns: int | None, outcome: str) -> str:
    return outcome if rtt_ns is None else f"took {rtt_ns / ms(1):.1f} ms"
