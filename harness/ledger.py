"""The undo ledger: what must be undone is written down *before* it is done.

``faults.jsonl`` holds two kinds of lines: promises (undo steps, fsynced before a process is
started, a container created or a fault injected) with their settlement, and the log of faults
with their evidence.  After a crash ``heal`` replays every promise that was not settled, latest
first, from any process and without the scenario.

Prior designs considered: cleaning up in ``finally`` alone loses everything on SIGKILL; asking the
Engine for labels finds containers but no stopped process and no toxic; a supervisor process can
itself be killed.  A file survives all of them.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from harness.core.clock import Clock
from harness.core.errors import HarnessError, UserError
from harness.core.undo import Step, perform

FILE = "faults.jsonl"


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A line of the ledger.  entry: promise | done | fault."""

    entry: str
    n: int = -1
    why: str = ""
    steps: list[dict[str, Any]] = []
    time: int | None = None
    fault: dict[str, Any] = {}


class FileLedger:
    """The ledger of a run in progress; safe to use from several threads."""

    def __init__(
        self, run_dir: Path, clock: Clock, *, start_ns: int = 0, durable: bool = True
    ) -> None:
        """``durable=False`` leaves the fsync out: a simulation leaves nothing to undo."""
        self.path = run_dir / FILE
        self._durable = durable
        self.start_ns = start_ns
        self._clock = clock
        self._lock = threading.Lock()
        self._next = 0
        self._file: BinaryIO = self.path.open("ab")
        # Tells ``heal`` that the harness of this run is alive; the kernel drops it on any death.
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.open: dict[int, tuple[str, Sequence[Step]]] = {}

    def promise(self, steps: Sequence[Step], *, why: str) -> int:
        """Writes undo steps and waits until they are on disk; returns their number."""
        with self._lock:
            number = self._next
            self._next += 1
            self.open[number] = (why, steps)
            self._write(Entry(entry="promise", n=number, why=why, steps=list(steps)), sync=True)
            return number

    def done(self, promise: int) -> None:
        """Marks a promise as kept."""
        with self._lock:
            if self.open.pop(promise, None) is not None:
                self._write(Entry(entry="done", n=promise))

    def fault(self, record: dict[str, Any]) -> None:
        """Appends a line to the log of faults."""
        with self._lock:
            self._write(Entry(entry="fault", fault=record))

    def keep_all(self) -> list[str]:
        """Performs every open promise, latest first; returns what could not be undone."""
        failures = []
        for number in sorted(self.open, reverse=True):
            why, steps = self.open[number]
            failed = _perform_all(steps, why)
            failures += failed
            if not failed:
                self.done(number)
        return failures

    def close(self) -> None:
        """Closes the file and gives up its lock."""
        self._file.close()

    def _write(self, entry: Entry, *, sync: bool = False) -> None:
        entry.time = self._clock.now() - self.start_ns
        try:
            self._file.write(msgspec.json.encode(entry) + b"\n")
            self._file.flush()
            if sync and self._durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise HarnessError(f"{self.path}: cannot be written: {error.strerror}") from error


def read(run_dir: Path) -> list[Entry]:
    """All entries of a run's ledger; a torn last line is left out."""
    decoder = msgspec.json.Decoder(Entry)
    entries = []
    path = run_dir / FILE
    if not path.exists():
        return []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line:
            continue
        try:
            entries.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            if number < path.read_bytes().count(b"\n"):
                raise UserError(f"{path}, line {number}: not a ledger line: {error}") from error
    return entries


def open_promises(run_dir: Path) -> dict[int, Entry]:
    """Promises that nobody has kept yet, by number."""
    found: dict[int, Entry] = {}
    for entry in read(run_dir):
        if entry.entry == "promise":
            found[entry.n] = entry
        elif entry.entry == "done":
            found.pop(entry.n, None)
    return found


def is_alive(run_dir: Path) -> bool:
    """True while the harness that writes this ledger still runs."""
    path = run_dir / FILE
    if not path.exists():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def heal(run_dir: Path) -> tuple[list[str], list[str]]:
    """Keeps every open promise of a dead run; returns (what was done, what failed)."""
    done: list[str] = []
    failures: list[str] = []
    with (run_dir / FILE).open("ab") as file:
        for number, entry in sorted(open_promises(run_dir).items(), reverse=True):
            failed = _perform_all(entry.steps, entry.why, done)
            failures += failed
            if not failed:
                file.write(msgspec.json.encode(Entry(entry="done", n=number)) + b"\n")
    return done, failures


def _perform_all(steps: Sequence[Step], why: str, done: list[str] | None = None) -> list[str]:
    failures = []
    for step in steps:
        try:
            said = perform(step)
        except HarnessError as error:
            failures.append(f"{why}: {error}")
        else:
            if done is not None:
                done.append(f"{why}: {said}")
    return failures
