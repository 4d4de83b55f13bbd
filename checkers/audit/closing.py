"""What the entries of a case amount to, and what is missing before it can be closed.

    state = fold(case.read()); missing(state, as_of=datetime.date(2026, 11, 30))

Only the latest audit counts; exceptions and owners are by dimension.  A word in the file that says
"done" counts for nothing: a dimension is closed by evidence or by an exception that still runs.

A finding closes by being gone from a later audit, or by a run that was attached *for* its rule
after the audit that has it.  What a run or history showed to be wrong stays until an entry corrects
it: a later run that went well does not take it back.

Traps: what a run showed to be right is evidence as long as its entry is not corrected.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from checkers.audit.case import Entry
from checkers.audit.model import Dimension, Finding, Record, Status


@dataclass
class State:
    """A case as it stands after its last entry."""

    intent: str = ""
    audit: dict[str, Any] = field(default_factory=dict)
    audit_entry: int = 0
    exceptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    attached: dict[int, dict[str, Any]] = field(default_factory=dict)  # by entry
    closed_by: int = 0  # the entry that closed it, 0 if it is open

    def open_findings(self) -> list[dict[str, Any]]:
        """Findings of the latest audit without a validation since, and all of what was attached."""
        validated = {
            rule
            for n, data in self.attached.items()
            if n > self.audit_entry
            for rule in data.get("validates", ())
        }
        found = [f for f in self.audit.get("findings", ()) if f["rule"] not in validated]
        for data in self.attached.values():
            found += data["findings"]
        return found

    def proofs(self, dimension: str) -> list[str]:
        """What attached runs and histories show for a dimension."""
        return [
            f"entry {n}: {says}"
            for n, data in self.attached.items()
            for says in data["proofs"].get(dimension, ())
        ]

    def status(self, dimension: str) -> str:
        """gap, ok or unknown, from the latest audit and all that is attached."""
        of_audit = str(self.audit.get("dimensions", {}).get(dimension, Status.UNKNOWN))
        findings = self.open_findings()
        if any(dimension in (f["dimension"], *f.get("also", ())) for f in findings):
            return Status.GAP
        return Status.OK if self.proofs(dimension) or of_audit == Status.OK else Status.UNKNOWN


def summary(record: Record) -> dict[str, Any]:
    """What a case keeps of an audit: enough to see later what was judged and found."""
    return {
        "verdict": record.verdict,
        "dimensions": {name: str(row.status) for name, row in record.dimensions.items()},
        "evidence": {name: list(row.evidence) for name, row in record.dimensions.items()},
        "findings": [_finding(f) for f in record.findings],
        "digests": {file.path: file.digest for file in record.files},
        "unread": [u.path for u in record.unread],
    }


def seen_summary(record: Record) -> dict[str, Any]:
    """What a case keeps of a run or history: findings, and proofs by dimension."""
    proofs: dict[str, list[str]] = {}
    for item in record.evidence:
        proofs.setdefault(str(item.dimension), []).append(item.says)
    return {
        "findings": [_finding(f) for f in record.findings],
        "proofs": proofs,
        "digests": {file.path: file.digest for file in record.files},
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "path": finding.path,
        "line": finding.line,
        "dimension": str(finding.dimension),
        "also": [str(other) for other in finding.also],
        "says": finding.says,
    }


def fold(entries: Iterable[Entry]) -> State:
    """The state after all entries; anything after a closure opens the case again."""
    state = State()
    for entry in entries:
        state.closed_by = 0
        if entry.corrects is not None:
            state.attached.pop(entry.corrects, None)
        if entry.kind == "open":
            state.intent = str(entry.data.get("intent", ""))
        elif entry.kind == "add":
            state.audit, state.audit_entry = entry.data, entry.n
        elif entry.kind == "attach":
            state.attached[entry.n] = entry.data
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
        status = state.status(dimension)
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
        for f in state.open_findings()
    ]
    return found
