"""Did a request arrive?  The server's own count of echoes tells.

Trap: a server that counts only all commands together cannot tell an echo from the work of the
clients, so such a count proves nothing and is not used.
"""

from __future__ import annotations

from harness.core.errors import HarnessError
from harness.core.protocols import Node


def echoes(node: Node) -> int:
    """Echo commands the server has processed so far; HarnessError if it does not count them."""
    facts = node.facts()
    if "echoes" not in facts:
        raise HarnessError(f"{node.name} does not count echoes, so an arrival cannot be proved")
    return int(facts["echoes"])
