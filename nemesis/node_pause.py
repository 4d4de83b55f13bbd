"""node-pause: the server stops (SIGSTOP or ``docker pause``) and goes on later.

Connections stay open, requests pile up in the kernel and are served late, by the server's clock:
keys whose time is over are gone by then.  Proof: the system reports it as stopped *and* a direct
echo stays unanswered.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core import limits
from harness.core.protocols import Evidence, Node, World
from harness.core.undo import Step
from nemesis.base import NodeFault, each


class NodePause(NodeFault):
    """Pauses servers and resumes them with all their memory."""

    kind = "node-pause"
    summary = "stops a server in its tracks (SIGSTOP) and lets it go on later"

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [step for node in self._nodes(world, targets) for step in node.undo_pause()]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for node in self._nodes(world, targets):
            self._remember(node)
            node.pause()

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._nodes(world, targets), _paused)

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(self._nodes(world, targets)), lambda node: node.resume())


def _paused(node: Node) -> Evidence:
    status = node.status()
    if status.state != "paused":
        return Evidence(False, f"server is {status.state}", {"state": status.state})
    probe = node.probe(limits.PROBE_TIMEOUT_MS)
    return Evidence(
        probe.outcome == "silent",
        f"server is {status.state}, direct echo {probe.outcome}",
        {"state": status.state, "echo": probe.outcome},
    )
