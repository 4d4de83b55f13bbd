"""Two verifications of one library: which cells got worse.

    changes = compare(before, after)
    changes.regressions, changes.exit_code

| before -> after             | change      |
|-----------------------------|-------------|
| not worse -> worse          | regression  |
| worse -> as claimed, better | fixed       |
| better -> as claimed        | weaker      |
| as claimed -> better        | stronger    |
| a cell is unknown, missing  | unknown     |

A promise that broke in a run is proof, so it is a regression.  "better" was one run in which
something that nobody promised held; that it broke now may have been luck before, so it is told and
fails only a strict comparison.

Trap: only cells of the same backend, situation and workload are compared; those that one side
lacks are listed, never taken for equal.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, EXIT_VIOLATION
from harness.verify.document import Cell, Document

Kind = Literal["regression", "fixed", "weaker", "stronger", "same", "still-worse", "unknown"]
_RANK = {"worse": 0, "as-claimed": 1, "better": 2}
SLOWER_MS, SLOWER_TIMES = 1000.0, 2.0  # a recovery that grew by both counts as slower


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One cell before and after."""

    backend: str
    situation: str
    workload: str
    kind: Kind
    before: str
    after: str
    says: str
    replay: str = ""


class Comparison(msgspec.Struct, kw_only=True):
    """All cells of both sides.  slower: recoveries that take much longer now, in words."""

    schema: str = "lockhavoc/comparison/1"
    before: str
    after: str
    changes: list[Change] = []
    slower: list[str] = []
    strict: bool = False

    @property
    def regressions(self) -> list[Change]:
        kinds = ("regression", "weaker") if self.strict else ("regression",)
        return [change for change in self.changes if change.kind in kinds]

    @property
    def exit_code(self) -> int:
        """1: something got worse.  2: nothing can be said about some cell that was known before."""
        if self.regressions:
            return EXIT_VIOLATION
        lost = [c for c in self.changes if c.kind == "unknown" and c.before in _RANK]
        return EXIT_UNKNOWN if lost or not self.changes else EXIT_AS_CLAIMED


def compare(before: Document, after: Document, *, strict: bool = False) -> Comparison:
    """Cell by cell, in the order of ``before``, then what is new."""
    old = {cell.place: cell for cell in before.cells}
    new = {cell.place: cell for cell in after.cells}
    found = Comparison(before=_label(before), after=_label(after), strict=strict)
    for place in dict.fromkeys([*old, *new]):
        found.changes.append(_change(place, old.get(place), new.get(place)))
        slower = _slower(old.get(place), new.get(place))
        if slower:
            found.slower.append(slower)
    return found


def _label(document: Document) -> str:
    """Library, client version and date, as people call it."""
    clients = [f"{k.removeprefix('client ')} {v}" for k, v in sorted(document.versions.items())
               if k.startswith("client ")]  # fmt: skip
    return f"{document.library} ({', '.join(clients) or 'no versions'}; {document.started})"


def _change(place: tuple[str, str, str], old: Cell | None, new: Cell | None) -> Change:
    before = "missing" if old is None else old.verdict
    after = "missing" if new is None else new.verdict
    says = "" if new is None else new.says
    if before not in _RANK or after not in _RANK:
        # Proof of a break needs no earlier run; nothing else can be compared.
        kind: Kind = "regression" if after == "worse" else "unknown"
    elif before == after:
        kind = "still-worse" if after == "worse" else "same"
    elif after == "worse":
        kind = "regression"
    elif before == "worse":
        kind = "fixed"
    else:
        kind = "weaker" if _RANK[after] < _RANK[before] else "stronger"
    backend, situation, workload = place
    return Change(
        backend=backend,
        situation=situation,
        workload=workload,
        kind=kind,
        before=before,
        after=after,
        says=says,
        replay="" if new is None else new.replay,
    )


def _slower(old: Cell | None, new: Cell | None) -> str:
    if old is None or new is None or old.recovery_ms is None or new.recovery_ms is None:
        return ""
    if new.recovery_ms - old.recovery_ms < SLOWER_MS:
        return ""
    if new.recovery_ms < SLOWER_TIMES * old.recovery_ms:
        return ""
    return (
        f"{new.backend} {new.situation}: the next grant after the fault takes "
        f"{new.recovery_ms:.0f} ms, it was {old.recovery_ms:.0f} ms"
    )
