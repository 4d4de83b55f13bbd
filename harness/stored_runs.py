"""The runs of a store as a list: what the index, the matrix and campaign pages are made of.

    runs = StoredRuns(Path("store"))
    for run in runs.all():                 # newest first
        print(run.id, run.facts.verdict)

Only the head of each ``results.json`` is decoded, and again only if the file has changed, so that a
store of thousands of runs is listed in a moment.

Traps.  ``latest`` and ``current`` are links to runs, not runs.  A run without results (still going,
or its harness died) is listed as unfinished, never left out.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness.core.errors import EXIT_UNKNOWN, UserError
from harness.core.protocols import FaultWindow
from harness.report.document import ClaimView, RunReport, Verdicts, load
from harness.store import PLAN, RESULTS

LINKS = frozenset({"latest", "current"})


class Facts(msgspec.Struct, kw_only=True):
    """The part of results.json that lists show."""

    name: str
    seed: int | None = None
    runtime: str = ""
    backend: str = ""
    library: str = ""
    claim: ClaimView = ClaimView()
    verdict: str = "unfinished"
    says: str = ""
    valid: Verdicts = Verdicts()
    exit_code: int = EXIT_UNKNOWN
    faults: list[FaultWindow] = []
    started: str = ""
    duration_ms: int = 0
    ops: int = 0


class StoredRun(msgspec.Struct, frozen=True):
    """A run: ``name/stamp`` and what is known of it."""

    name: str
    stamp: str
    facts: Facts

    @property
    def id(self) -> str:
        return f"{self.name}/{self.stamp}"

    @property
    def kinds(self) -> list[str]:
        """Kinds of its faults, each once."""
        return sorted({fault.kind for fault in self.facts.faults})


class StoredRuns:
    """The runs below one directory, read again when they change."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._known: dict[str, tuple[int, Facts]] = {}
        self._decode = msgspec.json.Decoder(Facts).decode

    def all(self) -> list[StoredRun]:
        """Every run, newest first."""
        found = []
        for folder in self._folders():
            for path in folder.iterdir():
                if path.name not in LINKS and path.is_dir() and (path / PLAN).exists():
                    found.append(StoredRun(folder.name, path.name, self._facts(path)))
        return sorted(found, key=lambda run: (run.stamp, run.name), reverse=True)

    def directory(self, name: str, stamp: str) -> Path | None:
        """The directory of a run, None if there is no such run.  ``latest`` is the newest."""
        if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in (name, stamp)):
            return None
        path = self.store / name / stamp
        if not (path / PLAN).exists():
            return None
        return path if path.resolve().is_relative_to(self.store.resolve()) else None

    def report(self, identity: str) -> RunReport:
        """The whole document of ``name/stamp``; UserError says what is wrong with it."""
        name, _, stamp = identity.partition("/")
        path = self.directory(name, stamp)
        if path is None:
            raise UserError(f"run {identity!r}: there is none in {self.store}")
        try:
            return load((path / RESULTS).read_bytes())
        except (OSError, msgspec.MsgspecError) as error:
            raise UserError(f"run {identity!r}: {RESULTS} cannot be read: {error}") from error

    def _folders(self) -> list[Path]:
        if not self.store.is_dir():
            return []
        folders = [path for path in self.store.iterdir() if path.name not in LINKS]
        return [path for path in folders if path.is_dir()]

    def _facts(self, path: Path) -> Facts:
        results = path / RESULTS
        try:
            stamp = results.stat().st_mtime_ns
            known = self._known.get(str(path))
            if known is None or known[0] != stamp:
                known = (stamp, self._decode(results.read_bytes()))
                self._known[str(path)] = known
            return known[1]
        except FileNotFoundError:
            says = "no results: it is still going, or its harness died (lockhavoc check RUN)"
            return Facts(name=path.parent.name, says=says)
        except (OSError, msgspec.MsgspecError) as error:
            return Facts(name=path.parent.name, says=f"{RESULTS} cannot be read: {error}")
