"""Who does not hear whom: a partition as a set of ordered pairs of nodes.

    split(["n1"], ["n1", "n2", "n3"])      # n1 neither hears nor is heard by n2 and n3
    ring(["n1", "n2", "n3"])               # each hears a majority, no two hear the same one
    bridge(["n1", "n2", "n3"])             # n1 and n3 meet only in n2

A grudge (a, b) means: what a says does not reach b.  The shapes are Jepsen's (nemesis.clj:
partition-halves, majorities-ring, bridge); "one", "minority", "majority", "halves" and "primary"
are all ``split`` with another target.
"""

from __future__ import annotations

from collections.abc import Sequence

Grudge = set[tuple[str, str]]

SHAPES = ("split", "ring", "bridge")
DIRECTIONS = ("both", "out", "in")


def split(side: Sequence[str], nodes: Sequence[str], direction: str = "both") -> Grudge:
    """``side`` against the rest.  direction: both; out: the side is not heard; in: it hears
    nothing."""
    rest = [node for node in nodes if node not in side]
    grudge = set()
    if direction in ("both", "out"):
        grudge |= {(a, b) for a in side for b in rest}
    if direction in ("both", "in"):
        grudge |= {(b, a) for a in side for b in rest}
    return grudge


def ring(nodes: Sequence[str]) -> Grudge:
    """Nodes in a circle: the middle of each window of a majority hears only that window."""
    count = len(nodes)
    majority = count // 2 + 1
    grudge = set()
    for first in range(count):
        window = [nodes[(first + i) % count] for i in range(majority)]
        middle = window[majority // 2]
        grudge |= {(node, middle) for node in nodes if node not in window}
    return grudge


def bridge(nodes: Sequence[str]) -> Grudge:
    """Two halves that do not hear each other, and one node between that hears both."""
    middle = len(nodes) // 2
    left, right = nodes[:middle], nodes[middle + 1 :]
    return {(a, b) for a in left for b in right} | {(b, a) for a in left for b in right}
