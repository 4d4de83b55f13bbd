"""node-restart-empty: the server is killed and started again with nothing, at once.

What a cache without persistence does after a crash: every lock is forgotten while its holder
still believes in it.  Proof: another process, another run id, and the mark is gone.

A member of etcd that lost its data may not come back as who it was, since it has forgotten what
it voted for.  So it is replaced, as an operator would: another member takes it out of the list and
adds a new one at its address, and that is what starts.  Proof is, besides, another member id.

Trap: for that the others must be a majority; more members at once are refused before any is killed,
because then nobody could be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, Node, World
from nemesis.base import each
from nemesis.commands import speaker
from nemesis.families import family_of
from nemesis.restart import Restart

REPLACED = ("etcd",)  # families whose emptied servers come back as new members


class NodeRestartEmpty(Restart):
    """Restarts servers without their data."""

    kind = "node-restart-empty"
    summary = "kills a server, removes its data and starts it again at once"
    wipe: ClassVar[bool] = True

    def inject(self, world: World, targets: Sequence[str]) -> None:
        left = len(world.cluster.nodes) - len(set(targets))
        if _replaces(world) and left <= len(world.cluster.nodes) // 2:
            raise HarnessError(
                f"{self.kind}: without {', '.join(targets)} the {left} others are no majority, so "
                "nobody could take them out of the cluster and add them again; aim at a minority"
            )
        super().inject(world, targets)

    def _start(self, world: World, node: Node) -> None:
        if _replaces(world):
            speaker(_witness(world, node)).command("member", "replace", node.name)
        super()._start(world, node)

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        def emptied(node: Node) -> Evidence:
            seen = self._restarted(node)
            if not _replaces(world) or "run_id" not in seen.facts:
                return seen
            now, was = (
                str(seen.facts[key]).partition("@")[0] for key in ("run_id", "run_id_before")
            )
            return Evidence(
                seen.bit and now != was,
                f"{seen.says}, {'another' if now != was else 'the same'} member id",
                {**seen.facts, "member": now, "member_before": was},
            )

        return self._prove(world, self._nodes(world, targets), emptied)

    def heal(self, world: World, targets: Sequence[str]) -> None:
        if not _replaces(world):
            return super().heal(world, targets)

        def again(node: Node) -> None:
            if node.status().state == "dead":
                self._start(world, node)

        return each(self._mine(self._nodes(world, targets)), again)


def _replaces(world: World) -> bool:
    return family_of(world.backend) in REPLACED


def _witness(world: World, node: Node) -> Node:
    """Another node that answers; HarnessError if there is none."""
    for other in world.cluster.nodes.values():
        if other is not node:
            with suppress(HarnessError):
                other.facts()
                return other
    raise HarnessError(f"{node.name}: no other node answers that could replace it")
