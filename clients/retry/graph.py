"""Who waits for whom: the clients of a deadlock that the requester cannot get past.

    cycle_members([("a", "b"), ("b", "a")], "a")        # {"a", "b"}

After Tarjan (1972), without recursion.  Trap: the requester need not be *in* the cycle; who waits
for somebody in it waits for ever just as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def cycle_members(edges: Iterable[Sequence[str]], start: str) -> set[str]:
    """All clients on cycles that can be reached from ``start``; a self-edge is a cycle."""
    graph: dict[str, list[str]] = {}
    looped = set()
    for waiter, holder in edges:
        graph.setdefault(waiter, []).append(holder)
        if waiter == holder:
            looped.add(waiter)
    order = {start: 0}
    low = {start: 0}
    stack = [start]
    on_stack = {start}
    path: list[tuple[str, Iterator[str]]] = [(start, iter(graph.get(start, ())))]
    members: set[str] = set()
    while path:
        node, rest = path[-1]
        for following in rest:
            if following not in order:
                order[following] = low[following] = len(order)
                stack.append(following)
                on_stack.add(following)
                path.append((following, iter(graph.get(following, ()))))
                break
            if following in on_stack:
                low[node] = min(low[node], order[following])
        else:
            path.pop()
            if path:
                parent = path[-1][0]
                low[parent] = min(low[parent], low[node])
            if low[node] == order[node]:
                component = [stack.pop()]
                while component[-1] != node:
                    component.append(stack.pop())
                on_stack.difference_update(component)
                if len(component) > 1:
                    members.update(component)
    return members | (looped & order.keys())
