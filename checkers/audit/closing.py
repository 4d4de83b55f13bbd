"""What the entries of a case amount to, and what is missing before it can be closed.

    state = fold(case.read()); missing(state, as_of=datetime.date(2026, 11, 30))

Only the latest audit counts; exceptions and owners are by dimension.  A word in the file that says
"done" counts for nothing: a dimension is closed by evidence or by an exception that still runs.

Traps: validation of a finding by a run is not in this version, so a finding closes only by being
gone from a later audit.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from checkers.audit.case import Entry
from checkers.audit.model import Dimension, Record, Status


@dataclass
class State:
    """A case as it stands after its last entry."""

    intent: str = ""
    audit: dict[str, Any] = field(default_factory=dict)
    audit_entry: int = 0
    exceptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    closed_by: int = 0  # the entry that closed it, 0 if it is open


def summary(record: Record) -> dict[str, Any]:
    """What a case keeps of an audit: enough to see later what was judged and found."""
    return {
        "verdict": record.verdict,
        "dimensions": {name: str(row.status) for name, row in record.dimensions.items()},
        "evidence": {name: list(row.evidence) for name, row in record.dimensions.items()},
        "findings": [
            {"rule": f.rule, "path": f.path, "line": f.line, "dimension": str(f.dimension)}
            for f in record.findings
        ],
        "digests": {file.path: file.digest for file in record.files},
        "unread": [u.path for u in record.unread],
    }


def fold(entries: Iterable[Entry]) -> State:
    """The state after all entries; anything after a closure opens the case again."""
    state = State()
    for entry in entries:
        state.closed_by = 0
        if entry.kind == "open":
            state.intent = str(entry.data.get("intent", ""))
        elif entry.kind == "add":
            state.audit, state.audit_entry = entry.data, entry.n
        elif entry.kind == "except":
            state.exceptions[str(entry.data["dimension"])] = entry.data
        elif entry.kind == "assign":
            state.owners[str(entry.data["dimension"])] = str(entry.data["owner"])
        elif entry.kind == "close":
            state.closed_by = entry.n
    return state


def missing(state: State, *, as_of: datetime.date) -> list[str]:
    """Everything that stands between the case and its closure; empty if it may be closed."""
    if not state.audit:
        return ["no audit: add one with 'lockhavoc audit add CASE PATH...'"]
    found = []
    for dimension in Dimension:
        status = state.audit["dimensions"].get(dimension, Status.UNKNOWN)
        exception = state.exceptions.get(dimension)
        if status != Status.OK:
            if exception is None:
                found.append(f"{dimension}: {status}, and no exception for it")
            elif datetime.date.fromisoformat(exception["until"]) < as_of:
                found.append(f"{dimension}: {status}; its exception ended {exception['until']}")
        if dimension not in state.owners:
            found.append(f"{dimension}: no owner")
    found += [
        f"{f['rule']} at {f['path']}:{f['line']}: found, and no validation has passed since"
        for f in state.audit["findings"]
    ]
    return found
