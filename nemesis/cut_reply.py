"""cut-reply: the request arrives and is carried out, the answer never comes.

The client does not know whether it holds the lock: the outcome that clients handle worst.  With
``how = "close"`` the connection ends where the answer should have been, with ``"silence"`` the
answer is thrown away and the client waits until its own time-out.  Proof: the server's count of
echoes went up while the echo through the link got no answer.

Traps: a lost answer stays lost, also after the heal, and with ``silence`` the heal closes the
connections that lost one (Toxiproxy's ``timeout`` toxic).  Latency would be no cut: it delivers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from harness.core.protocols import Evidence, Link, World
from nemesis.base import LinkFault, carries, server_of
from nemesis.counting import counted_echo
from nemesis.params import Parameter

# how -> toxic, its attributes, what an echo may see.  A server that ends the connection after each
# echo (ZooKeeper's words) ends the silence with it; which of the two was done, the toxic tells.
_HOW: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "close": ("limit_data", {"bytes": 0}, ("closed",)),
    "silence": ("timeout", {"timeout": 0}, ("silent", "closed")),
}


class CutReply(LinkFault):
    """Lets requests through and drops every answer."""

    kind = "cut-reply"
    summary = "lets requests arrive and keeps every answer from the client"
    alone: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "how",
            str,
            "",
            "close",
            "what the client sees instead of the answer: a closed connection or nothing",
            choices=tuple(_HOW),
        ),
    )

    def _apply(self, link: Link) -> None:
        toxic, attributes, _ = _HOW[self.params["how"]]
        link.add_toxic(toxic, "downstream", attributes)

    def _release(self, link: Link) -> None:
        toxic, _, _ = _HOW[self.params["how"]]
        link.remove_toxic(toxic, "downstream")

    def _bit(self, world: World, link: Link) -> Evidence:
        toxic, _, wanted = _HOW[self.params["how"]]
        node = server_of(world, link)
        listed = carries(link, toxic, "downstream")
        probe, arrived = counted_echo(link, node)
        return Evidence(
            listed and probe.outcome in wanted and arrived >= 1,
            f"request arrived {arrived} times, its answer did not: echo {probe.outcome}"
            if arrived
            else f"request did not arrive, echo {probe.outcome}",
            {"echo": probe.outcome, "arrived": arrived, "listed": listed},
        )
