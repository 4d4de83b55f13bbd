"""Rules and durable state of the protected resource.

One SQLite file (WAL) holds the state of each key and the log of all writes, accepted or refused,
in order of arrival.  A decision and its log entry are in one transaction; replies go out only
after the commit, so what a worker was told survives a kill of the server.

``synchronous=NORMAL``: a commit reaches the kernel (write(2)) but is not forced to the disk.  That
survives every fault this project injects into the resource (SIGKILL of the process); it would not
survive a power cut, which would take the harness and its history along.  FULL costs an fsync per
commit and would make the resource the bottleneck of the run.

    store = Store(directory, "fenced")
    store.write(Write("k", hold="0-1", token=3, value="a")).why      # "" = accepted
    store.commit()

Trap: the rules read the in-memory copy; it and the file may differ between ``write`` and
``commit``.  After a failed commit the store must not be used any more (the server exits).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import UserError

FILE = "resource.sqlite"
LOCK_FILE = "resource.lock"
MODES = ("unfenced", "fenced", "cas")
WAL_PAGES = 10_000  # a checkpoint forces to disk (tens of ms); once in 40 MB is seldom enough
INTEGER_MAX = 2**63 - 1  # SQLite's integers

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS state (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL, highest INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, key TEXT NOT NULL, hold TEXT, token INTEGER,
    value TEXT NOT NULL, expect INTEGER, accepted INTEGER NOT NULL, why TEXT NOT NULL
);
"""


class Write(msgspec.Struct, frozen=True):
    """One write as asked for.  token: fencing token.  expect: version last read (cas)."""

    key: str
    hold: str | None = None
    token: int | None = None
    value: Any = None
    expect: int | None = None


class Slot(msgspec.Struct):
    """State of one key.  version: accepted writes so far.  highest: greatest accepted token."""

    value: Any = None
    version: int = 0
    highest: int | None = None


class Decision(msgspec.Struct, frozen=True):
    """What became of a write.  why: "" if accepted, else stale | no-token | mismatch | no-expect.

    seq counts all writes from 1; time is ns of CLOCK_MONOTONIC at the decision.
    """

    seq: int
    time: int
    why: str
    version: int
    highest: int | None


def judge(mode: str, slot: Slot, write: Write) -> str:
    """The rule of the mode: "" to accept, else the reason to refuse.  Pure."""
    if mode == "fenced":
        if write.token is None:
            return "no-token"
        if slot.highest is not None and write.token < slot.highest:
            return "stale"
    if mode == "cas":
        if write.expect is None:
            return "no-expect"
        if write.expect != slot.version:
            return "mismatch"
    return ""


class Store:
    """The durable state of one resource; one process at a time, one thread."""

    def __init__(self, directory: Path, mode: str) -> None:
        if mode not in MODES:
            raise UserError(f"resource mode is {mode!r}; it must be one of {', '.join(MODES)}")
        directory.mkdir(parents=True, exist_ok=True)
        self.mode = mode
        self._lock_fd = _lock(directory)
        self._db = sqlite3.connect(directory / FILE, isolation_level=None)
        try:
            self._prepare(directory)
        except BaseException:
            self._db.close()
            os.close(self._lock_fd)
            raise
        self._in_transaction = False

    def write(self, write: Write) -> Decision:
        """Judges and applies one write, and logs it; durable after ``commit``."""
        slot = self._slots.get(write.key)
        if slot is None:
            slot = self._slots.setdefault(write.key, Slot())
        if not self._in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
            self._in_transaction = True
        why = judge(self.mode, slot, write)
        self._seq += 1
        now_ns = time.monotonic_ns()
        value = msgspec.json.encode(write.value).decode()
        self._db.execute(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._seq,
                now_ns,
                write.key,
                write.hold,
                write.token,
                value,
                write.expect,
                not why,
                why,
            ),
        )
        if not why:
            self._accept(write, slot, value)
        return Decision(self._seq, now_ns, why, slot.version, slot.highest)

    def read(self, key: str) -> Slot:
        """Value, version and highest token of a key (version 0 if it was never written)."""
        return self._slots.get(key) or Slot()

    def commit(self) -> None:
        """Makes everything since the last commit durable."""
        if self._in_transaction:
            self._db.execute("COMMIT")
            self._in_transaction = False

    def log(self, after: int, limit: int) -> list[dict[str, Any]]:
        """At most ``limit`` log entries with a seq greater than ``after``, in order."""
        return list(entries(self._db, after, limit))

    def close(self) -> None:
        """Commits and closes (which also empties the WAL into the file)."""
        try:
            self.commit()
        finally:
            self._db.close()
            os.close(self._lock_fd)

    def _accept(self, write: Write, slot: Slot, value: str) -> None:
        slot.value = write.value
        slot.version += 1
        if write.token is not None:
            slot.highest = max(
                write.token, slot.highest if slot.highest is not None else write.token
            )
        self._db.execute(
            "INSERT INTO state VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
            " value = excluded.value, version = excluded.version, highest = excluded.highest",
            (write.key, value, slot.version, slot.highest),
        )

    def _prepare(self, directory: Path) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        self._db.executescript(SCHEMA)
        self._check_mode(directory)
        self._slots = self._load()
        (last,) = self._db.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()
        self._seq = int(last)

    def _check_mode(self, directory: Path) -> None:
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('mode', ?)", (self.mode,))
        (made_as,) = self._db.execute("SELECT value FROM meta WHERE name = 'mode'").fetchone()
        if made_as != self.mode:
            raise UserError(
                f"resource mode is {self.mode!r}, but the data in {directory} were made in mode "
                f"{made_as!r}; use that mode or an empty directory"
            )

    def _load(self) -> dict[str, Slot]:
        rows = self._db.execute("SELECT key, value, version, highest FROM state")
        return {
            key: Slot(msgspec.json.decode(value), version, highest)
            for key, value, version, highest in rows
        }


def _lock(directory: Path) -> int:
    """Keeps a second server out of the directory; the kernel drops the lock when we die."""
    fd = os.open(directory / LOCK_FILE, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise UserError(
            f"another resource runs in {directory}; stop it or use another directory"
        ) from error
    return fd


def entries(db: sqlite3.Connection, after: int, limit: int) -> Iterator[dict[str, Any]]:
    """Log entries as plain objects (times absolute); ``limit`` -1 means all."""
    rows = db.execute(
        "SELECT seq, time, key, hold, token, value, expect, accepted, why FROM log"
        " WHERE seq > ? ORDER BY seq LIMIT ?",
        (after, limit),
    )
    for seq, time_ns, key, hold, token, value, expect, accepted, why in rows:
        yield {
            "seq": seq,
            "time": time_ns,
            "key": key,
            "hold": hold,
            "token": token,
            "value": msgspec.json.decode(value),
            "expect": expect,
            "accepted": bool(accepted),
            "why": why,
        }
