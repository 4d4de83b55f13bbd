"""What the retry loop leaves behind, as JSON lines: decisions, outcomes, dead letters.

    log = JsonLines("retry.jsonl")
    log({"kind": "outcome", ...})
    for record in read_records("retry.jsonl"): ...

Each line is written by one call under a file lock, so several processes may share a file.  A torn
last line (a crash) is left out and counted.  Dead letters keep the whole request and its context.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from harness.core.errors import UserError

Sink = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Request:
    """What somebody wants: a lock, for whom, within which bounds.  Times in ms."""

    lock_name: str
    requester_id: str
    budget_ms: int
    ttl_ms: int | None = None
    fairness: str = "no-starvation-guarantee"
    max_retries: int | None = None
    constraints: tuple[str, ...] = ()
    priority: int | None = None
    seed: int = 0


def digest(context: dict[str, Any]) -> str:
    """SHA-256 of a context as canonical JSON."""
    text = json.dumps(context, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class JsonLines:
    """A sink that appends to a file; made readable by its owner only, since reasons may tell."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __call__(self, record: dict[str, Any]) -> None:
        with _locked(self.path, "ab") as file:
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


@contextmanager
def _locked(path: Path, mode: str) -> Iterator[IO[bytes]]:
    def private(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600)

    with open(path, mode, opener=private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """All records of a file; UserError names the first line in the middle that is none."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    return list(_records(path, raw))


def _records(path: str | Path, raw: bytes) -> Iterator[dict[str, Any]]:
    lines = raw.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return  # torn by a crash: there is no newline after it
            raise UserError(f"{path}:{number}: not a JSON line: {error}") from error
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
            raise UserError(f"{path}:{number}: not a record of the retry loop (no 'kind')")
        yield record


def dead_letter(
    request: Request, context: dict[str, Any], outcome: str, why: str
) -> dict[str, Any]:
    """The record of a request that was given up."""
    asked = asdict(request)
    return {
        "kind": "dead-letter", "outcome": outcome, "why": why, "request": asked, "context": context,
    }  # fmt: skip


def request_in(
    place: object, record: dict[str, Any], lock_name: str | None = None
) -> Request | None:
    """The request in a dead letter (of this lock); None for any other record.

    UserError, with the place, for a letter whose request is none.
    """
    asked = record.get("request")
    if record.get("kind") != "dead-letter" or not isinstance(asked, dict):
        return None
    if lock_name not in (None, asked.get("lock_name")):
        return None
    try:
        return Request(**(asked | {"constraints": tuple(asked.get("constraints", ()))}))
    except TypeError as error:
        raise UserError(f"{place}: a dead letter's request cannot be read: {error}") from error


def requeue(path: str | Path, give: Callable[[Request], None], lock_name: str | None = None) -> int:
    """Hands dead letters (of one lock) to ``give`` and then takes them out of the file.

    Returns how many.  If ``give`` raises, all letters stay: one may be given twice, none is lost.
    """
    given = 0
    try:
        opened = _locked(Path(path), "r+b")
        with opened as file:
            left = []
            for record in _records(path, file.read()):
                request = request_in(path, record, lock_name)
                if request is None:
                    left.append(record)
                else:
                    give(request)
                    given += 1
            file.seek(0)
            file.write(b"".join(json.dumps(record).encode() + b"\n" for record in left))
            file.truncate()
    except OSError as error:
        raise UserError(f"{path}: cannot be used: {error.strerror}") from error
    return given
