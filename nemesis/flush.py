"""flush: somebody empties the store (FLUSHALL, etcdctl del), and with it every lock.

    [[faults]]
    kind = "flush"
    target = "primary"
    when = "held"

A cache that is cleared at a deployment, a colleague on the wrong host: the holder goes on and
knows nothing, and the next one who asks is granted the lock.  Proof: a mark stored just before is
gone.  It cannot be undone: healing means no more than that the server answers.

Traps: a replica of Redis refuses it, and then the fault fails: aim at ``primary``.  In etcd it is
one transaction of the whole cluster, whichever member takes it, and the revision goes on counting:
old tokens stay old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, Markable, Node, World
from harness.core.undo import Step
from nemesis.base import NodeFault
from nemesis.commands import speaker
from nemesis.families import family_of

# Family -> the command that removes every key.
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "redis": ("FLUSHALL",),
    "etcd": ("del", "--all"),
    "zookeeper": ("deleteall", "/"),
}


class Flush(NodeFault):
    """Removes all data of servers; they go on."""

    kind = "flush"
    summary = "removes every key of a server, all locks with them; cannot be undone"
    families: ClassVar[tuple[str, ...]] = tuple(_COMMANDS)

    refused: ClassVar[Mapping[str, str]] = {
        "postgres": "no command gives back the advisory locks of other sessions: use backend-kill",
    }

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return []  # what is gone is gone

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for node in self._nodes(world, targets):
            self._remember(node)
            _markable(node).leave_mark(self._mark(node))
            speaker(node).command(*_COMMANDS[family_of(world.backend)])

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._nodes(world, targets), self._emptied)

    def _emptied(self, node: Node) -> Evidence:
        kept, same = _markable(node).has_mark(self._mark(node)), not self._is_anew(node)
        return Evidence(
            not kept and same,
            f"the mark left before is {'there' if kept else 'gone'}, "
            f"{'the same' if same else 'another'} server process",
            {"kept": kept, "same_process": same},
        )

    def _mark(self, node: Node) -> str:
        return f"lockhavoc:mark:flush:{self._before[node.name].identity}"

    def _is_anew(self, node: Node) -> bool:
        return self._is_new(node.name, node.status())

    def heal(self, world: World, targets: Sequence[str]) -> None:
        """Nothing: the data cannot be had back."""


def _markable(node: Node) -> Markable:
    if not isinstance(node, Markable):
        raise HarnessError(f"flush: {node.name} takes no marks, so it cannot be proved")
    return node
