"""Reads the record of a resource from its directory, whether the server is alive or dead.

    python -m clients.resource.export DIR [--start-ns N] > resource.jsonl

Trap: ``time`` in the file is absolute CLOCK_MONOTONIC; ``start_ns`` (the start of the run on the
same clock) turns it into ns since the start, which is what checkers expect.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from clients.resource.store import FILE, entries
from harness.core.errors import HarnessError
from harness.core.protocols import ResourceRecord


def records(directory: Path, *, start_ns: int = 0) -> Iterator[ResourceRecord]:
    """Everything the resource accepted or refused, in order of arrival."""
    path = directory / FILE
    if not path.exists():
        raise HarnessError(f"{path} does not exist: no resource has run in that directory")
    db = sqlite3.connect(path)
    try:
        db.execute("PRAGMA query_only=ON")
        for entry in entries(db, 0, -1):
            del entry["expect"]
            entry["time"] -= start_ns
            yield ResourceRecord(**entry)
    except sqlite3.DatabaseError as error:
        raise HarnessError(f"{path} cannot be read: {error}") from error
    finally:
        db.close()


def main() -> int:
    """Prints the record as JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m clients.resource.export")
    parser.add_argument("dir", type=Path)
    parser.add_argument("--start-ns", type=int, default=0)
    args = parser.parse_args()
    try:
        for record in records(args.dir, start_ns=args.start_ns):
            sys.stdout.buffer.write(msgspec.json.encode(record) + b"\n")
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
