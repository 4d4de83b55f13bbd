"""What a verification found: its cells, a scorecard, and the file that keeps both.

    document = load(Path("verify.json"))
    document.scorecard["fencing"].status          # "ok" | "gap" | "unknown"

The file is JSON; its cells carry seed, run and the line that repeats them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from harness.core.errors import (
    EXIT_AS_CLAIMED,
    EXIT_INTERRUPTED,
    EXIT_UNKNOWN,
    EXIT_VIOLATION,
    UserError,
)
from harness.verify.model import DIMENSIONS, HOLDS, PROPERTIES, Stance

SCHEMA = "lockhavoc/verify/1"

Verdict = Literal["worse", "as-claimed", "better", "unknown", "not-run"]
Seen = Literal["held", "broken", "unknown", "not-asked"]


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """How holders learned that their lock was gone.

    losses: beliefs in a lock that was gone.  lag_ms, awake_lag_ms: the longest, and the longest
    without sleep.  told_by: what ended the belief -> how often.  signals: loss signals of the
    library in the whole run.
    """

    losses: int = 0
    lag_ms: float = 0.0
    awake_lag_ms: float = 0.0
    told_by: dict[str, int] = {}
    signals: int = 0


class Cell(msgspec.Struct, kw_only=True):
    """One situation on one backend.

    claims: property -> stance.  seen: property -> what the run showed.  found: one sentence per
    property that broke, with the operations that prove it.  why: of the claims; says: of the
    verdict.  recovery_ms: from the end of the last fault to the next grant.  takeover_ms: from the
    fault to the next grant to somebody else.
    """

    backend: str
    runtime: str
    situation: str
    about: str = ""
    workload: str = "mutex"
    kind: str = "safety"
    dimension: str = ""
    claims: dict[str, Stance] = {}
    why: str = ""
    seen: dict[str, Seen] = {}
    verdict: Verdict = "unknown"
    says: str = ""
    found: list[str] = []
    loss: Loss = Loss()
    recovery_ms: float | None = None
    takeover_ms: float | None = None
    seed: int | None = None
    run_dir: str = ""
    replay: str = ""
    duration_ms: int = 0

    @property
    def place(self) -> tuple[str, str, str]:
        """What makes two cells comparable."""
        return self.backend, self.situation, self.workload


class Score(msgspec.Struct, kw_only=True):
    """A dimension: how often something was promised and kept, broken, or not shown.

    status: gap (a promise was broken), ok (some were kept and none broken), unknown (none was put
    to the test).  unpromised: breaks that nothing was promised against.
    """

    status: Literal["ok", "gap", "unknown"]
    kept: int = 0
    broken: int = 0
    unknown: int = 0
    unpromised: int = 0


class Document(msgspec.Struct, kw_only=True):
    """A verification of one library."""

    schema: str = SCHEMA
    library: str
    about: str = ""
    lease: str = ""
    fencing: str = ""
    loss_signal: str = ""
    versions: dict[str, str] = {}
    started: str = ""
    duration_ms: int = 0
    command: str = ""
    seed: int = 0
    interrupted: bool = False
    cells: list[Cell] = []
    scorecard: dict[str, Score] = {}

    def count(self, verdict: Verdict) -> int:
        return sum(cell.verdict == verdict for cell in self.cells)

    @property
    def exit_code(self) -> int:
        """Worse than claimed wins over an interruption, that over unknown."""
        if self.count("worse"):
            return EXIT_VIOLATION
        if self.interrupted:
            return EXIT_INTERRUPTED
        if self.count("unknown") or self.count("not-run") == len(self.cells):
            return EXIT_UNKNOWN
        return EXIT_AS_CLAIMED


def scorecard(cells: Sequence[Cell]) -> dict[str, Score]:
    """Per dimension, over all cells that ran.

    A property counts in its own dimension; progress where the situation belongs.
    """
    home = {one.name: one.dimension for one in PROPERTIES}
    tally: dict[str, dict[str, int]] = {
        name: dict.fromkeys(("kept", "broken", "unknown", "unpromised"), 0) for name in DIMENSIONS
    }
    for cell in cells:
        if cell.verdict == "not-run":
            continue
        for name, stance in cell.claims.items():
            dimension = home.get(name, "")
            if name == "progress" and cell.dimension in ("release_retry", "recovery"):
                dimension = cell.dimension
            seen, counts = cell.seen.get(name, "unknown"), tally[dimension]
            if stance == HOLDS and seen in ("held", "broken", "unknown"):
                counts[{"held": "kept"}.get(seen, seen)] += 1
            elif stance != HOLDS and seen == "broken":
                counts["unpromised"] += 1
    return {name: _score(counts) for name, counts in tally.items()}


def _score(counts: Mapping[str, int]) -> Score:
    status: Literal["ok", "gap", "unknown"] = "unknown"
    if counts["broken"]:
        status = "gap"
    elif counts["kept"]:
        status = "ok"
    return Score(status=status, **counts)


def encode(document: Document) -> bytes:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def load(path: Path) -> Document:
    """Reads what ``encode`` wrote; UserError says what is wrong with it."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Document)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; `lockhavoc verify` writes one") from None
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{path}: not a verification: {error}") from error
    if found.schema != SCHEMA:
        raise UserError(f"{path}: schema is {found.schema!r}, this version reads {SCHEMA!r}")
    return found
