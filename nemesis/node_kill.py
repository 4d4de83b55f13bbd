"""node-kill: the server dies at once (SIGKILL); ``heal`` starts it again on the data it left.

Proof: the system reports it as dead *and* a direct echo finds nobody.  Healed: another process
(or container start) answers.

Trap: after a crash of the harness nothing starts the server again: the run is over, and what is
left of its cluster is removed.  So there is no undo step.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core import limits
from harness.core.protocols import Evidence, Node, World
from harness.core.undo import Step
from nemesis.base import NodeFault, each, node_answers, prove


class NodeKill(NodeFault):
    """Kills servers; they stay down until the fault heals."""

    kind = "node-kill"
    summary = "kills a server (SIGKILL); it is started again, with its data, when the fault heals"

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return []

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for node in self._nodes(world, targets):
            self._remember(node)
            node.kill()

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._nodes(world, targets), _dead)

    def heal(self, world: World, targets: Sequence[str]) -> None:
        start_dead(world, self._mine(self._nodes(world, targets)))

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        nodes = self._nodes(world, targets)
        return prove(world, nodes, self._anew, limits.HEAL_TIMEOUT_MS)

    def _anew(self, node: Node) -> Evidence:
        seen = node_answers(node)
        new = self._is_new(node.name, node.status())
        return Evidence(
            seen.bit and new, f"{seen.says}, {'a new' if new else 'the old'} process", seen.facts
        )


def start_dead(world: World, nodes: Sequence[Node]) -> None:
    """Starts those that are dead, with their data; leaves any other alone."""

    def start(node: Node) -> None:
        if node.status().state == "dead":
            node.start()

    # At once: a member of a quorum is ready only when enough of the others are up.
    each(nodes, start, at_once=world.runtime != "sim")


def _dead(node: Node) -> Evidence:
    status, probe = node.status(), node.probe(limits.PROBE_TIMEOUT_MS)
    return Evidence(
        status.state == "dead" and probe.outcome in ("refused", "closed"),
        f"server is {status.state}, direct echo {probe.outcome}",
        {"state": status.state, "echo": probe.outcome},
    )
