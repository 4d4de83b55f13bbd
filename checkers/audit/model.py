"""What an audit is made of: facts with places, findings, and a status per dimension.

    fact = Fact("grant", Place("worker.py", 12), {"library": "redis-py", "lease_ns": 3 * 10**10})

A reader turns files into facts, a rule turns facts into findings, ``verdict`` puts both into one
record.  Nobody but a reader looks at text, and nobody but a rule judges.

Traps: durations are integer nanoseconds whatever unit the source used.  A value that could not be
found out is absent from ``values``; None says that it is known to be none.  A dimension is *ok*
only with evidence; silence of the rules leaves it *unknown*.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

SCHEMA = "lockhavoc/audit/1"


class Dimension(StrEnum):
    """The five questions that decide who may touch the protected thing."""

    IDENTITY = "identity"
    LEASE = "lease"
    FENCING = "fencing"
    RELEASE_RETRY = "release_retry"
    RECOVERY = "recovery"


class Status(StrEnum):
    """What is known of a dimension."""

    GAP = "gap"
    OK = "ok"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """Worst first; the order of declaration is the order in reports."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Place(msgspec.Struct, frozen=True, order=True):
    """Where: lines and columns count from 1; ``end_line`` is the last line."""

    path: str
    line: int
    end_line: int = 0
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Fact(msgspec.Struct, frozen=True):
    """One thing that a file says, in words that are the same for all languages.

    kind: grant, release, renew, write, wait (a pause or bound of work), setting; anomaly and proof
    from runs and histories; words beginning with ``log-`` from logs.
    ``scope`` names the function around it.  ``values`` by kind are listed in docs of the readers.
    """

    kind: str
    place: Place
    values: Mapping[str, Any]
    scope: str = ""

    def get(self, name: str, default: Any = None) -> Any:
        """The value called ``name``, or ``default`` where it is not known."""
        return self.values.get(name, default)


class Finding(msgspec.Struct, frozen=True):
    """A gap: which rule, where, why it breaks the controlling rule, and what closes it."""

    rule: str
    kind: str  # of failure: K01 to K25
    dimension: Dimension
    severity: Severity
    path: str
    line: int
    end_line: int
    column: int
    says: str
    interleaving: tuple[str, ...]
    fix: str
    also: tuple[Dimension, ...] = ()  # other dimensions that the same gap leaves open
    replay: str = ""  # the command that shows it again, for what was seen in a run
    fingerprint: str = ""  # the same as long as rule, file and text of the line are


class Excepted(msgspec.Struct, frozen=True):
    """A finding that somebody accepted for a bounded time, in a comment beside it."""

    finding: Finding
    reason: str
    until: str  # ISO date; on that day it still holds


class Evidence(msgspec.Struct, frozen=True):
    """Something positive that was seen."""

    dimension: Dimension
    path: str
    line: int
    says: str


class DimensionRecord(msgspec.Struct, frozen=True):
    """One row of the table of five."""

    status: Status
    expected: str
    evidence: tuple[str, ...] = ()  # "path:line: what", VERIFIED
    difference: tuple[str, ...] = ()  # ids of the rules that found something, with places
    owner: str = "UNKNOWN"
    validation: str = "not run"


class FileRecord(msgspec.Struct, frozen=True):
    """What was found in one file."""

    path: str
    status: str  # gap, no_gap, unknown
    dimensions: dict[str, Status]
    findings: tuple[Finding, ...]
    digest: str  # SHA-256 of the bytes that were judged


class Unread(msgspec.Struct, frozen=True):
    """A file that was not judged, and why."""

    path: str
    why: str


class Record(msgspec.Struct, frozen=True):
    """The outcome of an audit; the same input gives the same bytes."""

    schema: str
    verdict: str
    dimensions: dict[str, DimensionRecord]
    files: tuple[FileRecord, ...]
    evidence: tuple[Evidence, ...]
    exceptions: tuple[Excepted, ...]
    refused_exceptions: tuple[str, ...]
    unread: tuple[Unread, ...]
    known: tuple[Finding, ...] = ()  # findings that a baseline has: listed, and no failure
    as_of: str = ""  # the day that exceptions were judged for; empty where there are none

    @property
    def findings(self) -> list[Finding]:
        """All findings, worst first, then by place."""
        order = list(Severity)
        found = [finding for file in self.files for finding in file.findings]
        return sorted(found, key=lambda f: (order.index(f.severity), f.path, f.line, f.rule))
