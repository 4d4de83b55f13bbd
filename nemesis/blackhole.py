"""blackhole: every packet to and from a server vanishes, also the first one of a new connection.

What a host that is gone or a firewall that drops looks like: nobody is refused, nothing is closed,
each side waits for its own time-out.  Kernels repeat what was not acknowledged, so after the heal
open connections go on unless somebody gave up.

Proof: a direct echo stays unanswered and the namespace has counted packets that it dropped.

Trap: the proxies of the links still accept connections; it is their packets to the server that are
swallowed.  To stop one client, jam or sever its link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, Node, Unreachable, World
from harness.core.undo import Step
from nemesis.base import NodeFault, each


class Blackhole(NodeFault):
    """Swallows the packets of servers and lets them through again."""

    kind = "blackhole"
    summary = "swallows every packet to and from a server (iptables DROP)"
    runtimes: ClassVar[tuple[str, ...]] = ("docker",)
    refused: ClassVar[Mapping[str, str]] = {
        "process": "a local server has no network namespace of its own",
        "sim": "its network knows no packets",
    }

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [
            step for node in self._nodes(world, targets) for step in _network(node).undo_swallow()
        ]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for node in self._nodes(world, targets):
            self._remember(node)
            _network(node).swallow()

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._nodes(world, targets), _swallowed)

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(self._nodes(world, targets)), lambda node: _network(node).deliver())


def _swallowed(node: Node) -> Evidence:
    probe, count = node.probe(limits.PROBE_TIMEOUT_MS), _network(node).swallowed()
    return Evidence(
        probe.outcome == "silent" and count > 0,
        f"direct echo {probe.outcome}, {count} packets swallowed",
        {"echo": probe.outcome, "packets": count},
    )


def _network(node: Node) -> Unreachable:
    if not isinstance(node, Unreachable):
        raise HarnessError(f"the network of {node.name} cannot be got at")
    return node
