"""From the position of an event in a history to its line in the file, in almost no memory.

Files written by lockhavoc have one event a line, so a line number is the position plus a
constant.  Blank lines, comments and pretty-printed forms shift that; each shift is one entry.

    lines = LineMap(); lines.add(2); lines.add(3); lines.add(7)
    lines[2] == 7
"""

from __future__ import annotations

import bisect


class LineMap:
    """``lines[position]``: the line (from 1) of the event at ``position`` (from 0)."""

    __slots__ = ("_next", "_positions", "_shifts", "count")

    def __init__(self) -> None:
        self.count = 0
        self._positions: list[int] = []
        self._shifts: list[int] = []
        self._next = -1

    def add(self, line: int) -> None:
        """The next event stands on ``line``."""
        if line != self._next:
            self._positions.append(self.count)
            self._shifts.append(line - self.count)
        self._next = line + 1
        self.count += 1

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, position: int) -> int:
        if not 0 <= position < self.count:
            raise IndexError(position)
        slot = bisect.bisect_right(self._positions, position) - 1
        return position + self._shifts[slot]
