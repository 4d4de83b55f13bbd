"""failover: the primary is lost and a replica becomes the primary, with what it has by then.

    {kind = "failover", target = "primary", when = "held"}
    {kind = "failover", target = "primary", when = "held", params = {old = "lives"}}

What an operator (or a supervisor) does.  The replica that is furthest behind is taken: what was
acknowledged and had not reached it is gone, and so is everything that replicas never hear of, such
as PostgreSQL's advisory locks.  With ``old = "lives"`` nobody stops the old primary: there are two
until the fault heals, each with clients of its own.  Where sentinels watch, one of them is told to
do it (SENTINEL FAILOVER): it takes a replica of its choice, and tells a living old primary some
ten seconds later.

Proof: the replica says that it is the primary, of a higher term than the old one had; the old one
is dead, or still says that it is one.  Healed: the former primary is there again, as a replica
(its data is made anew if need be), and there is one primary.

Traps: the target is the server that *loses* its office.  To make a replica lag, jam the link
between the two before.  Clients that hold on to the old primary stay with it while it lives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, Node, Place, Promotable, World
from harness.core.undo import Step
from nemesis.base import NodeFault, each, node_answers, prove
from nemesis.commands import speaker
from nemesis.node_kill import start_dead
from nemesis.params import Parameter

BACKENDS = ("postgres-ha", "redis-sentinel")  # those with replicas that can be promoted by hand


class Failover(NodeFault):
    """Kills a primary (or not) and promotes one of its replicas."""

    kind = "failover"
    summary = "promotes a replica in place of the primary, which is killed or lives on"
    families: ClassVar[tuple[str, ...]] = ("postgres", "redis")
    runtimes: ClassVar[tuple[str, ...]] = ("docker", "process")
    refused: ClassVar[Mapping[str, str]] = {
        "sim": "its server has no replica",
        "etcd": "a quorum elects its leader itself; kill, pause or cut off the leader",
        "zookeeper": "a quorum elects its leader itself; kill, pause or cut off the leader",
    }
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "old",
            str,
            "",
            "killed",
            "what becomes of the old primary before: it is killed, or lives on as a second one",
            choices=("killed", "lives"),
        ),
    )

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._was: dict[str, Mapping[str, Any]] = {}
        self._heir: dict[str, Node] = {}  # old primary -> who was promoted in its place
        self._behind: dict[str, int] = {}  # old primary -> bytes of log that its heir lacked

    def can(self, place: Place) -> str | None:
        why = super().can(place)
        if why is None and place.backend not in BACKENDS:
            return (
                f"fault {self.kind!r} is not for the backend {place.backend!r}: it has no replica "
                f"that could be promoted; it works on: {', '.join(BACKENDS)}"
            )
        return why

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return []  # as for node-kill: what is left of the cluster is removed

    def inject(self, world: World, targets: Sequence[str]) -> None:
        (old,) = self._nodes(world, targets)  # two at a time would be two primaries to begin with
        was = old.facts()
        if was["role"] != "primary":
            raise HarnessError(
                f"{self.kind}: {old.name} is a {was['role']}; aim at the primary, which is replaced"
            )
        replicas = _replicas(world, old)
        sentinel = _sentinel(world)
        self._remember(old)
        self._was[old.name] = {**was, "term": _term(world, old)}
        if self.params["old"] == "killed":
            old.kill()
        promoter = sentinel or world.cluster.nodes[min(replicas, key=lambda name: replicas[name])]
        assert isinstance(promoter, Promotable)
        promoter.promote()
        heir = promoter if sentinel is None else world.cluster.nodes[world.cluster.primary()]
        self._heir[old.name] = heir
        self._behind[old.name] = int(was.get("lsn", 0)) - replicas.get(heir.name, 0)

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        def replaced(old: Node) -> Evidence:
            return self._replaced(world, old)

        return self._prove(world, self._nodes(world, targets), replaced)

    def _replaced(self, world: World, old: Node) -> Evidence:
        if old.name not in self._heir:
            return Evidence(False, "it was not replaced")
        heir, was = self._heir[old.name], self._was[old.name]
        now, term = heir.facts(), _term(world, heir)
        state = old.status().state
        higher = term > int(was["term"])
        left = old.facts()["role"] if state == "running" else state
        gone = left == ("dead" if self.params["old"] == "killed" else "primary")
        return Evidence(
            now["role"] == "primary" and higher and gone,
            f"{heir.name} is {now['role']} of term {term} (was {was['term']}), lacked "
            f"{self._behind[old.name]} bytes of log; the old primary is {left}",
            {
                "promoted": heir.name,
                "role": now["role"],
                "term": term,
                "term_before": was["term"],
                "old": left,
                "bytes_behind": self._behind[old.name],
            },
        )

    def heal(self, world: World, targets: Sequence[str]) -> None:
        def rejoin(old: Node) -> None:
            self._rejoin(world, old)

        each(self._mine(self._nodes(world, targets)), rejoin)

    def _rejoin(self, world: World, old: Node) -> None:
        """Starts the old primary anew: it looks for the present one and follows it; or tells it,
        as sentinels would do a little later."""
        sentinel = _sentinel(world)
        if sentinel is not None:
            start_dead(world, [old])
            if old.facts()["role"] == "primary" and world.cluster.primary() != old.name:
                host, _, port = str(sentinel.facts()["primary"]).rpartition(":")
                speaker(old).command("REPLICAOF", host, port)
            return
        if old.name in self._heir and old.status().state != "dead":
            if old.facts()["role"] != "primary":
                return  # somebody has told it
            old.kill()
        if old.status().state == "dead":
            old.start()

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        nodes = self._nodes(world, targets)
        return prove(world, nodes, self._follows, limits.HEAL_TIMEOUT_MS)

    def _follows(self, old: Node) -> Evidence:
        seen, role = node_answers(old), old.facts()["role"]
        heir = self._heir[old.name].facts()["role"] if old.name in self._heir else "primary"
        return Evidence(
            seen.bit and role == "replica" and heir == "primary",
            f"{seen.says}, a {role} now; the promoted one is {heir}",
            {**seen.facts, "role": role, "promoted_role": heir},
        )


def _replicas(world: World, old: Node) -> dict[str, int]:
    """Replicas and how much of the log they have; HarnessError if there is none."""
    found = {}
    for node in world.cluster.nodes.values():
        if node.name != old.name and isinstance(node, Promotable):
            facts = node.facts()
            if facts["role"] == "replica":
                found[node.name] = int(facts.get("lsn", 0))
    if not found:
        raise HarnessError(f"failover: {old.name} has no replica that could be promoted")
    return found


def _sentinel(world: World) -> Node | None:
    """A node that is no server of data but watches them, and answers; None where there is none."""
    for node in world.cluster.nodes.values():
        if node.role == "member":
            with suppress(HarnessError):
                node.facts()
                return node
    return None


def _term(world: World, node: Node) -> int:
    """Time in office: as the primary tells it, or as the sentinels count."""
    told = [node, *(n for n in world.cluster.nodes.values() if n.role == "member")]
    terms = [0]
    for one in told:
        with suppress(HarnessError):
            terms.append(int(one.facts().get("term", 0)))
    return max(terms)
