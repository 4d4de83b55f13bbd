"""partition: nodes of a cluster do not hear each other, and perhaps clients not all of them.

    {kind = "partition", target = "primary"}                          # the leader alone
    {kind = "partition", target = "minority", params = {clients = "rest"}}
    {kind = "partition", target = "all-nodes", params = {shape = "ring"}}

The target is one side (``node:NAME``, ``any-node``, ``minority``, ``majority``, ``primary``), the
other nodes are the other.  ``how = "jam"`` keeps every byte and delivers it at the heal, as TCP
does over a network that is away for a while; ``sever`` closes connections and refuses new ones.

Proof: each proxy on the way lists what it should, an echo through every cut link gets no answer,
and each node runs (whether it still answers is its own affair: a pooler without its server does
not).  What the cluster makes of it (a new leader, none) is for the history to show.

Traps: who dials is the protocol's affair, so what a says to b is stopped *up* the link a-b and
*down* the link b-a.  One direction alone can only be jammed.  A client that can reach both sides is
the usual case in life, and the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from harness.core import limits
from harness.core.errors import HarnessError, UserError
from harness.core.protocols import Direction, Evidence, Link, Node, Place, World
from harness.core.undo import Step
from nemesis.base import (
    BaseFault,
    carries,
    check_clean,
    describe,
    each,
    link_clean,
    merge,
    pick,
    prove,
)
from nemesis.grudges import DIRECTIONS, SHAPES, Grudge, bridge, ring, split
from nemesis.jam import HOLD_MS
from nemesis.params import Parameter

CLIENTS = ("all", "rest", "target", "holder-with-target")
Cuts = dict[str, tuple[Direction, ...]]  # name of a link -> the directions that are stopped


class Partition(BaseFault):
    """Stops what one side says to the other, on every link between them."""

    kind = "partition"
    acts_on = "node"
    summary = "nodes do not hear each other: one side against the rest, a ring or a bridge"
    runtimes: ClassVar[tuple[str, ...]] = ("docker",)
    refused: ClassVar[Mapping[str, str]] = {
        "process": "local servers reach each other without a proxy",
        "sim": "its server is alone",
    }
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("shape", str, "", "split", "target against the rest, or who hears whom in a "
                  "ring of majorities or over a bridge (target all-nodes)", choices=SHAPES),
        Parameter("how", str, "", "jam", "bytes are kept until the heal, or connections closed",
                  choices=("jam", "sever")),
        Parameter("direction", str, "", "both", "out: the target is not heard; in: it hears "
                  "nothing (split and jam only)", choices=DIRECTIONS),
        Parameter("clients", str, "", "all", "whom clients reach: all nodes, only the rest, only "
                  "the target; or the holder only the target and all others only the rest",
                  choices=CLIENTS),
        Parameter("rotate", int, "places", 0, "turns the order of the nodes in a ring or bridge",
                  0, 100),
    )  # fmt: skip

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        one_way = self.params["direction"] != "both"
        if one_way and (self.params["how"] == "sever" or self.params["shape"] != "split"):
            raise UserError(
                f"fault 'partition': params.direction = {self.params['direction']!r}: one "
                "direction alone goes with shape 'split' and how 'jam'; use these or 'both'"
            )
        self._cuts: Cuts | None = None

    def can(self, place: Place) -> str | None:
        why = super().can(place)
        if why is None and not place.peers:
            return (
                f"fault {self.kind!r} is not for the backend {place.backend!r}: its nodes do not "
                "talk to each other; cut clients off with sever or jam"
            )
        return why

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        # Aims may have moved on when it is injected, so the undo covers every link there is.
        return [step for link in world.cluster.links for step in link.undo("latency")]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        cuts = self._plan(world, targets)
        links = pick(world.cluster.links, list(cuts), "link")
        check_clean(self.kind, links)
        self._cuts = cuts
        for link in links:
            self._touched.add(link.name)
            if self.params["how"] == "sever":
                link.set_enabled(False)
                continue
            for direction in cuts[link.name]:
                link.add_toxic("latency", direction, {"latency": HOLD_MS, "jitter": 0})

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        if not self._cuts:
            return Evidence(False, "not injected")
        links = pick(world.cluster.links, list(self._cuts), "link")
        cut = self._prove(world, links, self._bit)
        nodes = prove(
            world,
            list(world.cluster.nodes.values()),
            _runs,
            limits.EVIDENCE_TIMEOUT_MS,
        )
        return merge({"links": cut, "nodes": nodes})

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(world.cluster.links), self._release)

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        links = self._mine(world.cluster.links)
        return prove(world, links, link_clean, limits.HEAL_TIMEOUT_MS)

    def _release(self, link: Link) -> None:
        if self.params["how"] == "sever":
            link.set_enabled(True)
            return
        for direction in (self._cuts or {})[link.name]:
            link.remove_toxic("latency", direction)

    def _bit(self, link: Link) -> Evidence:
        directions = (self._cuts or {})[link.name]
        toxics, probe = link.toxics(), link.probe(limits.PROBE_TIMEOUT_MS)
        if self.params["how"] == "sever":
            listed = any(toxic.get("enabled") is False for toxic in toxics)
            dumb = probe.outcome in ("refused", "closed")
        else:
            listed, dumb = carries(link, "latency", *directions), probe.outcome == "silent"
        return Evidence(
            listed and dumb,
            f"{describe(toxics)}, echo {probe.outcome}",
            {"echo": probe.outcome, "listed": listed},
        )

    def _plan(self, world: World, targets: Sequence[str]) -> Cuts:
        """Which links are stopped in which directions; HarnessError if nothing would be cut."""
        pick(world.cluster.nodes.values(), targets, "node")
        nodes = list(world.cluster.nodes)
        grudge = self._grudge(targets, nodes)
        cuts: Cuts = {}
        for link in world.cluster.links:
            stopped: list[Direction] = []
            if link.src in nodes:
                if (link.src, link.dst) in grudge:
                    stopped.append("upstream")
                if (link.dst, link.src) in grudge:
                    stopped.append("downstream")
            elif link.dst in self._out_of_reach(world, link.src, targets, nodes):
                stopped = ["upstream", "downstream"]
            if stopped:
                cuts[link.name] = tuple(stopped)
        if not any(link.name in cuts and link.src in nodes for link in world.cluster.links):
            raise HarnessError(
                f"{self.kind}: target {', '.join(targets)} leaves nothing to be cut between "
                f"{', '.join(nodes)}; aim at some of the nodes, or use a ring or bridge"
            )
        return cuts

    def _grudge(self, targets: Sequence[str], nodes: Sequence[str]) -> Grudge:
        if self.params["shape"] == "split":
            return split(targets, nodes, self.params["direction"])
        turn = self.params["rotate"] % len(targets)
        order = [*targets[turn:], *targets[:turn]]
        return ring(order) if self.params["shape"] == "ring" else bridge(order)

    def _out_of_reach(
        self, world: World, worker: str, targets: Sequence[str], nodes: Sequence[str]
    ) -> Iterator[str]:
        clients = self.params["clients"]
        if clients == "all":
            return iter(())
        rest = [node for node in nodes if node not in targets]
        if clients == "rest":
            return iter(targets)
        if clients == "target":
            return iter(rest)
        held_by = {f"w{index}" for index in world.view.holders()[:1]}
        return iter(rest if worker in held_by else targets)


def _runs(node: Node) -> Evidence:
    state = node.status().state
    return Evidence(state == "running", f"server is {state}", {"state": state})
