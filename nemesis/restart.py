"""What the two restarts share: kill, start, and proof of what became of the data.

Before the kill a mark is stored among the server's data (if the node can, see
``protocols.Markable``).  Afterwards it must be there, or must be gone: exact proof, whatever the
workers write in the first millisecond.  A server that gets lost data back from the others keeps its
mark beside them (``protocols.OwnDisk``).  Without marks the number of keys right after the start
has to do.

Trap: a server without persistence has no data to come back with; a restart *with* its data is
then refused, instead of being an empty one under another name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, Markable, Node, OwnDisk, World
from harness.core.undo import Step
from nemesis.base import NodeFault, each
from nemesis.node_kill import start_dead


class Restart(NodeFault):
    """Kills servers (all targets first) and starts them again at once."""

    wipe: ClassVar[bool]

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._was: dict[str, Mapping[str, Any]] = {}
        self._keys_after: dict[str, int] = {}
        self._marks: dict[str, str] = {}

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return []  # as for node-kill

    def inject(self, world: World, targets: Sequence[str]) -> None:
        nodes = self._nodes(world, targets)
        for node in nodes:
            self._remember(node)
            self._was[node.name] = self._check(node)
            mark = f"lockhavoc:mark:{self._before[node.name].identity}"
            own = _own_disk(node)
            if own is not None:
                own.leave_own_mark(mark)
                self._marks[node.name] = mark
            elif isinstance(node, Markable):
                node.leave_mark(mark)
                self._marks[node.name] = mark
        for node in nodes:
            node.kill()

        def start(node: Node) -> None:
            self._start(world, node)

        each(nodes, start, at_once=world.runtime != "sim")

    def _start(self, world: World, node: Node) -> None:
        node.start(wipe=self.wipe)
        self._keys_after[node.name] = int(node.facts()["keys"])

    def _check(self, node: Node) -> Mapping[str, Any]:
        """Facts before the kill; HarnessError if the restart could not be what it says."""
        facts = node.facts()
        if not self.wipe and not facts.get("persistent", True):
            raise HarnessError(
                f"{self.kind}: {node.name} keeps nothing on disk, so it cannot come back with its "
                "data; turn persistence on in the backend's options or use node-restart-empty"
            )
        return facts

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._nodes(world, targets), self._restarted)

    def _restarted(self, node: Node) -> Evidence:
        name = node.name
        if name not in self._keys_after:
            return Evidence(False, "it was not restarted")
        now, was = node.facts(), self._was[name]
        new = self._is_new(name, node.status()) and now["run_id"] != was["run_id"]
        keys, after = int(was["keys"]), self._keys_after[name]
        own = _own_disk(node)
        if name in self._marks and own is not None:
            kept = own.has_own_mark(self._marks[name])
            proof = f"mark on its disk is {'there' if kept else 'gone'}"
        elif name in self._marks and isinstance(node, Markable):
            kept = node.has_mark(self._marks[name])
            proof = f"mark is {'there' if kept else 'gone'}"
        else:
            kept = after > 0 or (keys == 0 and not self.wipe)
            proof = f"{after} keys right after the start"
        return Evidence(
            new and kept is not self.wipe,
            f"{'another' if new else 'the same'} server process, {proof}, {keys} keys before",
            {"run_id": now["run_id"], "run_id_before": was["run_id"], "kept": kept}
            | {"keys_before": keys, "keys_after": after},
        )

    def heal(self, world: World, targets: Sequence[str]) -> None:
        # Only when the start in ``inject`` failed.
        start_dead(world, self._mine(self._nodes(world, targets)))


def _own_disk(node: Node) -> OwnDisk | None:
    """The node, if its mark must be one that the others cannot give back."""
    return node if isinstance(node, OwnDisk) and node.replicated else None
