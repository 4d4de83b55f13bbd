"""store-full: the store says that it is full, and takes no write until an operator clears that.

    [[faults]]
    kind = "store-full"
    target = "any-node"
    when = "held"

etcd's best-known outage: the data has outgrown its quota, one member raises the alarm NOSPACE, and
the whole cluster takes no more writes.  Deletions and keep-alives go on, so a lock can be given
back and be renewed, but nobody is granted one; no client may take that for "somebody has it".
Proof: a write is refused with the server's own words; healed: a write is accepted.

How: the alarm itself is raised, as the server would; the store is not really filled.

Trap: the alarm is the cluster's, whichever member it is raised for, and outlives restarts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.core import limits
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import Evidence, Markable, Node, World
from harness.core.undo import Step
from nemesis.base import NodeFault, each, node_answers, prove
from nemesis.commands import speaker

_MARK = "store-full"
_REFUSAL = "space exceeded"


class StoreFull(NodeFault):
    """Raises the alarm NOSPACE for members."""

    kind = "store-full"
    summary = "raises the alarm of a full store: no write is taken until it is cleared"
    runtimes: ClassVar[tuple[str, ...]] = ("docker", "process")
    families: ClassVar[tuple[str, ...]] = ("etcd",)
    refused: ClassVar[Mapping[str, str]] = {
        "sim": "a simulated server is never full",
        "redis": "it is full by its memory: use memory-pressure",
        "postgres": "it is full only with its disk, which is this machine's, too",
        "zookeeper": "it is full only with its disk, which is this machine's, too",
    }

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [
            step
            for node in self._nodes(world, targets)
            for step in speaker(node).undo_command("alarm", "disarm")
        ]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for node in self._nodes(world, targets):
            refusal = _refusal(node)
            if refusal:
                raise HarnessError(
                    f"{self.kind}: {node.name} refuses writes already ({refusal}), so the fault "
                    "would prove nothing; keep faults apart in time"
                )
        for node in self._nodes(world, targets):
            self._remember(node)
            speaker(node).command("alarm", "activate")

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._nodes(world, targets), _is_full)

    def heal(self, world: World, targets: Sequence[str]) -> None:
        def clear(node: Node) -> None:
            speaker(node).command("alarm", "disarm")

        each(self._mine(self._nodes(world, targets)), clear)

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        return prove(world, self._nodes(world, targets), _takes_writes, limits.HEAL_TIMEOUT_MS)


def _refusal(node: Node) -> str:
    """ "" if a write is accepted now, else what the server answers."""
    if not isinstance(node, Markable):
        raise HarnessError(f"store-full: {node.name} takes no marks, so it cannot be proved")
    try:
        node.leave_mark(_MARK)
    except AnsweredError as error:
        return str(error)
    return ""


def _is_full(node: Node) -> Evidence:
    refusal = _refusal(node)
    return Evidence(
        _REFUSAL in refusal,
        f"write refused ({refusal})" if refusal else "write accepted",
        {"refusal": refusal},
    )


def _takes_writes(node: Node) -> Evidence:
    seen, refusal = node_answers(node), _refusal(node)
    facts: dict[str, Any] = {**seen.facts, "refusal": refusal}
    says = f"write refused ({refusal})" if refusal else "write accepted"
    return Evidence(seen.bit and not refusal, f"{seen.says}, {says}", facts)
