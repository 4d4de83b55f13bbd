"""A second opinion on leases: every order, and for each the times as difference constraints.

Shares nothing with ``checkers.models.lease``.  For a given order of operations the points p1 .. pn
must satisfy call <= p <= return, p[i] <= p[i+1], and bounds between a point and the one that last
refreshed the lease.  Such a system has a solution iff its graph has no negative cycle (Bellman and
Ford).  Strict bounds are exact on reals: times are scaled by more than the number of constraints,
and "less" is "at most one less".
"""

from __future__ import annotations

import itertools

from checkers.models.base import observed
from checkers.oracle import precedes
from harness.core.history import Interval

SCALE = 1000
Edge = tuple[int, int, int]  # p[b] <= p[a] + weight; node 0 is time zero


def legal(ops: list[Interval], ttl_ns: int, *, exact: bool) -> bool:
    """Whether the lease history has a legal order with legal times.  All ids are holds."""
    said = [op for op in ops if op.outcome != "fail" or observed(op)]
    said = [op for op in said if _word(op) is not None]
    required = [op for op in said if op.outcome != "info"]
    optional = [op for op in said if op.outcome == "info"]
    for count in range(len(optional) + 1):
        for used in itertools.combinations(optional, count):
            for order in itertools.permutations([*required, *used]):
                if _respects(order) and _timely(order, ttl_ns, exact=exact):
                    return True
    return False


def _word(op: Interval) -> str | None:
    seen = observed(op)
    if seen is None:
        return op.invoke.f
    if op.invoke.f == "expire" or (seen == "busy") != (op.invoke.f == "acquire"):
        return None
    return seen


def _respects(order: tuple[Interval, ...]) -> bool:
    return not any(precedes(later, earlier) for earlier, later in itertools.combinations(order, 2))


def _timely(order: tuple[Interval, ...], ttl_ns: int, *, exact: bool) -> bool:
    edges: list[Edge] = []
    holder: str | None = None
    refreshed, lasts = 0, 0
    for node, op in enumerate(order, start=1):
        edges.append((node, 0, -op.call_ns * SCALE))  # p >= call
        end_ns = op.return_ns if op.outcome != "info" else op.field("until_ns")
        if end_ns is not None:
            edges.append((0, node, end_ns * SCALE))
        if node > 1:
            edges.append((node, node - 1, 0))
        word, hold = _word(op), op.field("hold")
        mine = holder is not None and holder == hold
        over = (node, refreshed, -lasts * SCALE)  # p >= refreshed + TTL
        before = (refreshed, node, lasts * SCALE - 1)  # p < refreshed + TTL
        ttl = op.field("ttl_ns")
        if word == "acquire":
            if holder is not None:
                edges.append(over)
            holder, refreshed, lasts = hold, node, ttl_ns if ttl is None else ttl
        elif word in ("release", "renew"):
            if not mine:
                return False
            if exact:
                edges.append(before)
            if word == "renew":
                refreshed, lasts = node, lasts if ttl is None else ttl
            else:
                holder = None
        elif word == "busy":
            if holder is None:
                return False
            if exact:
                edges.append(before)
        elif word == "not-held":
            if mine:
                edges.append(over)
        elif word == "expire":
            if not mine:
                return False
            edges.append(over)
            holder = None
    return _solvable(edges, len(order) + 1)


def _solvable(edges: list[Edge], nodes: int) -> bool:
    distance = [0] * nodes
    for _ in range(nodes):
        changed = False
        for a, b, weight in edges:
            if distance[a] + weight < distance[b]:
                distance[b] = distance[a] + weight
                changed = True
        if not changed:
            return True
    return False
