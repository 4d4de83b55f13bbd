"""Shapes of partitions, checked against what each is meant to be, for every size up to nine."""

from __future__ import annotations

import pytest

from harness.core.errors import UserError
from nemesis.grudges import Grudge, bridge, ring, split
from nemesis.partition import Partition


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(1, count + 1)]


def heard_by(node: str, nodes: list[str], grudge: Grudge) -> frozenset[str]:
    """Whom it still hears, itself included."""
    return frozenset(other for other in nodes if (other, node) not in grudge)


@pytest.mark.parametrize("count", range(3, 10))
def test_in_a_ring_each_hears_a_majority_and_no_two_the_same(count: int) -> None:
    nodes = names(count)
    heard = [heard_by(node, nodes, ring(nodes)) for node in nodes]
    assert all(len(one) == count // 2 + 1 for one in heard)
    assert len(set(heard)) == count


@pytest.mark.parametrize("count", range(3, 10))
def test_over_a_bridge_one_node_hears_all_and_the_halves_meet_nowhere_else(count: int) -> None:
    nodes = names(count)
    heard = {node: heard_by(node, nodes, bridge(nodes)) for node in nodes}
    middle = nodes[count // 2]
    assert heard[middle] == frozenset(nodes)
    left = frozenset(nodes[: count // 2])
    right = frozenset(nodes[count // 2 + 1 :])
    assert all(heard[node] == left | {middle} for node in left)
    assert all(heard[node] == right | {middle} for node in right)


@pytest.mark.parametrize("direction", ["both", "out", "in"])
def test_a_split_stops_only_the_way_asked_for(direction: str) -> None:
    nodes = names(5)
    grudge = split(["n2", "n4"], nodes, direction)
    out = {(a, b) for a in ("n2", "n4") for b in ("n1", "n3", "n5")}
    back = {(b, a) for a, b in out}
    assert grudge == {"both": out | back, "out": out, "in": back}[direction]


def test_of_two_nodes_there_is_no_ring() -> None:
    assert ring(["a", "b"]) == set()
    assert split(["a", "b"], ["a", "b"]) == set()


@pytest.mark.parametrize("params", [{"how": "sever"}, {"shape": "ring"}])
def test_one_direction_alone_is_refused_where_it_cannot_be(params: dict[str, str]) -> None:
    with pytest.raises(UserError, match="one direction alone"):
        Partition(direction="in", **params)
