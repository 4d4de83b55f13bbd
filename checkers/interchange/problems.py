"""Collecting what is wrong with a file, so that one run names every malformed line.

    problems = Problems(Path("history.jsonl"))
    problems.add(17, "field 'time' is 5.0, must be an integer number of ns; write 5")
    problems.raise_if_any()

Traps: only the first PROBLEMS_MAX are kept, the rest is counted, so that a file that is no
history at all does not fill the screen (or the memory) with one message per line.
"""

from __future__ import annotations

from pathlib import Path

from harness.core.errors import UserError
from harness.core.limits import PROBLEMS_MAX


class Problems:
    """Problems of one file, each with its line (or row) number."""

    def __init__(self, path: Path, *, unit: str = "line") -> None:
        self.path, self.unit = path, unit
        self.found: list[str] = []
        self.count = 0

    def add(self, number: int, says: str) -> None:
        """``says``: the field, its value, the rule it breaks and the fix."""
        self.count += 1
        if len(self.found) < PROBLEMS_MAX:
            self.found.append(f"{self.unit} {number}: {says}")

    def raise_if_any(self) -> None:
        """UserError with all of them, if there is one."""
        if not self.count:
            return
        listed = list(self.found)
        if self.count > len(listed):
            listed.append(f"and {self.count - len(listed)} more")
        raise UserError(
            f"{str(self.path)!r} is not a well-formed history, it was not judged", listed
        )
