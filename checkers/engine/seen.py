"""What a search remembers: configurations met (with dominance), and where it got stuck.

Of two configurations that have the same operations done and the same state, the one that used a
subset of the other's unknown operations is at least as good: what the other can still do, it can do
too, and it need not use what it has left.  So only the minimal sets are kept for each key.  Models
with times in their states compare those as well (``Model.cost``: less is at least as good).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.core.limits import ENGINE_ENDS_MAX

if TYPE_CHECKING:
    from checkers.engine.work import Work

# Measured on CPython 3.11-3.13: a key of three small numbers in a dict, with its value.
BYTES_PER_KEY = 230
BYTES_PER_SET = 120
BYTES_PER_STATE = 500  # with the few transitions from it


class Seen:
    """Keys (r, mask, state) with the minimal sets of unknown operations used to get there.

    ``keys`` maps a key to the one set (an int, the usual case), or to a list of them; for costed
    models to a list of (set, cost) under the part of the state that must be equal.
    """

    __slots__ = ("_costs", "_work", "keys", "pending", "sets")

    def __init__(self, work: Work) -> None:
        self.keys: dict[Any, Any] = {}
        self.sets = 0
        self.pending = 0  # configurations that wait in queues
        self._work = work
        self._costs: list[tuple[Any, tuple[float, ...]]] = []

    def clear(self) -> None:
        self.keys.clear()
        self.sets = 0

    def admit(self, r: int, mask: int, state: int, used: int) -> bool:
        """Remembers a configuration; False if one at least as good is known."""
        if self._work.costed:
            return self._admit_costed(r, mask, state, used)
        key = (r, mask, state)
        known = self.keys.get(key)
        if known is None:
            self.keys[key] = used
            return True
        if isinstance(known, int):
            if known & used == known:
                return False
            self.keys[key] = [used] if known & used == used else [known, used]
            self.sets += 1
            return True
        for one in known:
            if one & used == one:
                return False
        kept = [one for one in known if one & used != used]
        self.sets += 1 + len(kept) - len(known)
        kept.append(used)
        self.keys[key] = kept
        return True

    def _admit_costed(self, r: int, mask: int, state: int, used: int) -> bool:
        costs, states = self._costs, self._work.states
        while len(costs) <= state:
            costs.append(self._work.model.cost(states[len(costs)]))
        same, cost = costs[state]
        known = self.keys.setdefault((r, mask, same), [])
        for one, price in known:
            if one & used == one and all(a <= b for a, b in zip(price, cost, strict=True)):
                return False
        known.append((used, cost))
        self.sets += 1
        return True

    def bytes(self) -> int:
        """Estimated memory of the search, its keys and the work it has laid out."""
        work = self._work
        width = 8 * (len(work.infos) // 30)
        return (
            (len(self.keys) + self.pending) * BYTES_PER_KEY
            + self.sets * (BYTES_PER_SET + width)
            + len(work.states) * BYTES_PER_STATE
            + work.weight * 8
        )


class Stuck:
    """The farthest return that could not be passed, and the configurations that ended there.

    ``path``: operations in the order they were done (those of unknown outcome as ~place), for the
    current configuration.  ``ends``: a few (state, mask, used, last of the path) at return ``r``.
    """

    __slots__ = ("ends", "nodes", "path", "r")

    def __init__(self) -> None:
        self.r = -1
        self.nodes = 0
        self.path: list[int] = []
        self.ends: list[tuple[int, int, int, list[int]]] = []

    def after(self, nodes: int) -> Stuck:
        self.nodes = nodes
        return self

    def note(self, r: int, state: int, mask: int, used: int) -> None:
        if r > self.r:
            self.r = r
            self.ends = []
        if len(self.ends) < ENGINE_ENDS_MAX:
            self.ends.append((state, mask, used, self.path[-ENGINE_ENDS_MAX:]))
