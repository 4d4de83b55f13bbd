"""A case: an append-only file of JSON lines, each with the SHA-256 of the line before.

    case = Case(Path("billing.case")); case.append("open", {"intent": "one biller at a time"}, at)
    case.read()                          # entries; CaseError names the line that does not fit

Beside the file stands ``<name>.head`` with the number of lines and the hash of the last one, so
that a file that was cut at its end is noticed, too.  Appending holds a lock on ``<name>.head``, so
two writers lose nothing, and syncs the line before the head.

Traps: a kill between line and head leaves one line more than the head says: that is accepted, as
its hash fits.  A kill within a line leaves a torn tail, which never was an entry; readers skip it
and the next append cuts it off.  Nobody is kept from writing a whole new file with a new head: keep
the hash of the closure elsewhere if that matters.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import UserError

FIRST = "0" * 64


class CaseError(UserError):
    """A case file that is not as it was written; the message names the line."""


class Entry(msgspec.Struct, frozen=True):
    """One line.  ``at``: UTC, ISO 8601.  ``corrects``: the entry that this one supersedes."""

    n: int
    previous: str
    at: str
    kind: str
    data: dict[str, Any]
    corrects: int | None = None


class Case:
    """One case file and its head."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head = path.with_name(path.name + ".head")

    def read(self) -> list[Entry]:
        """All entries, verified; CaseError where a line was edited, moved, dropped or cut."""
        if not self.path.exists():
            raise UserError(f"{self.path}: there is no such case; open it first")
        lines = self._lines()
        entries, previous = [], FIRST
        for number, line in enumerate(lines, 1):
            try:
                entry = msgspec.json.decode(line, type=Entry)
            except msgspec.MsgspecError as error:
                raise CaseError(f"{self.path}: line {number} is no entry: {error}") from error
            if entry.n != number or entry.previous != previous:
                raise CaseError(
                    f"{self.path}: line {number} does not follow the line before it: one of the "
                    "two was edited, moved or dropped"
                )
            previous = _hash(line)
            entries.append(entry)
        self._check_head(lines)
        return entries

    def append(
        self, kind: str, data: dict[str, Any], at: str, *, corrects: int | None = None
    ) -> Entry:
        """Writes and syncs one entry; CaseError if the file is not whole."""
        with self._locked():
            entries = self.read() if self.path.exists() else []
            if corrects is not None and not 1 <= corrects <= len(entries):
                raise UserError(f"{self.path}: there is no entry {corrects} to correct")
            lines = self._lines() if entries else []
            previous = _hash(lines[-1]) if lines else FIRST
            entry = Entry(len(entries) + 1, previous, at, kind, data, corrects)
            line = json.dumps(
                msgspec.to_builtins(entry), sort_keys=True, separators=(",", ":")
            ).encode()
            with self.path.open("ab") as file:
                file.truncate(sum(len(x) + 1 for x in lines))  # a torn tail never was an entry
                file.write(line + b"\n")
                file.flush()
                os.fsync(file.fileno())
            self._write_head(len(entries) + 1, _hash(line))
            return entry

    def digest(self) -> str:
        """The hash of the last line, which stands for the whole file."""
        lines = self._lines()
        return _hash(lines[-1]) if lines else FIRST

    def _lines(self) -> list[bytes]:
        """Whole lines; what stands behind the last newline is a torn tail."""
        return self.path.read_bytes().split(b"\n")[:-1]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.head.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _write_head(self, count: int, digest: str) -> None:
        with self.head.open("r+") as file:  # in place: others wait for a lock on this very file
            file.write(f"{count:012d} {digest}\n")
            file.flush()
            os.fsync(file.fileno())

    def _check_head(self, lines: list[bytes]) -> None:
        words = self.head.read_text().split() if self.head.exists() else []
        if not words:
            if lines and not self.head.exists():
                raise CaseError(f"{self.path}: {self.head.name}, which tells its end, is missing")
            return  # killed between the first line and its head
        try:
            count, digest = int(words[0]), words[1]
        except (ValueError, IndexError) as error:
            raise CaseError(f"{self.head}: is no head of a case") from error
        if len(lines) < count:
            raise CaseError(f"{self.path}: line {len(lines) + 1} of {count} is missing: cut off")
        if _hash(lines[count - 1]) != digest:
            raise CaseError(f"{self.path}: line {count} is not the one that was written: edited")


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
