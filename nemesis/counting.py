"""Did a request arrive?  The server's own count of echoes tells.

Trap: a server that counts only all commands together cannot tell an echo from the work of the
clients, so such a count proves nothing and is not used.
"""

from __future__ import annotations

from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Link, Node, Probe


def echoes(node: Node) -> int:
    """Echo commands the server has processed so far; HarnessError if it does not count them."""
    facts = node.facts()
    if "echoes" not in facts:
        raise HarnessError(f"{node.name} does not count echoes, so an arrival cannot be proved")
    return int(facts["echoes"])


def counted_echo(link: Link, node: Node) -> tuple[Probe, int]:
    """One echo through ``link``, and whether it arrived at its server meanwhile: 1 or 0.

    Some servers number the echoes instead of counting them, so only "more than before" tells.
    """
    before = echoes(node)
    probe = link.probe(limits.PROBE_TIMEOUT_MS)
    return probe, int(echoes(node) > before)
