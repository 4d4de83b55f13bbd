"""sever: open connections are closed and new ones refused, as when a firewall rejects.

Proof: the proxy says it is disabled, an echo through the link finds no open way, and the server
still answers directly.

Trap: where the link's port is published by an Engine, its own forwarder may accept and then
close; so *closed* is proof as well as *refused*.
"""

from __future__ import annotations

from typing import ClassVar

from harness.core import limits
from harness.core.protocols import Evidence, Link, World
from nemesis.base import LinkFault, describe, server_of


class Sever(LinkFault):
    """Disables links and enables them again."""

    kind = "sever"
    summary = "closes the connections of a link and refuses new ones"
    between_nodes: ClassVar[bool] = True

    def _apply(self, link: Link) -> None:
        link.set_enabled(False)

    def _release(self, link: Link) -> None:
        link.set_enabled(True)

    def _bit(self, world: World, link: Link) -> Evidence:
        toxics, probe = link.toxics(), link.probe(limits.PROBE_TIMEOUT_MS)
        direct = server_of(world, link).probe(limits.PROBE_TIMEOUT_MS)
        disabled = any(toxic.get("enabled") is False for toxic in toxics)
        return Evidence(
            disabled and probe.outcome in ("refused", "closed") and direct.outcome == "answered",
            f"link {describe(toxics)}, echo {probe.outcome}, direct echo {direct.outcome}",
            {"echo": probe.outcome, "direct": direct.outcome, "disabled": disabled},
        )
