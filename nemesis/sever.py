"""sever: open connections are closed and new ones refused, as when a firewall rejects.

Proof: the proxy says it is disabled, an echo through the link finds no open way, and the server
still answers directly.

Trap: where the link's port is published by an Engine, its own forwarder may accept and then
close; so *closed* is proof as well as *refused*.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core import limits
from harness.core.protocols import Evidence, Link, World
from nemesis.base import LinkFault, describe, each, server_of


class Sever(LinkFault):
    """Disables links and enables them again."""

    kind = "sever"
    summary = "closes the connections of a link and refuses new ones"

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for link in self._clean_links(world, targets):
            link.set_enabled(False)

    def _bit(self, world: World, link: Link) -> Evidence:
        toxics, probe = link.toxics(), link.probe(limits.PROBE_TIMEOUT_MS)
        direct = server_of(world, link).probe(limits.PROBE_TIMEOUT_MS)
        disabled = any(toxic.get("enabled") is False for toxic in toxics)
        return Evidence(
            disabled and probe.outcome in ("refused", "closed") and direct.outcome == "answered",
            f"link {describe(toxics)}, echo {probe.outcome}, direct echo {direct.outcome}",
            {"echo": probe.outcome, "direct": direct.outcome, "disabled": disabled},
        )

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._links(world, targets), lambda link: link.set_enabled(True))
