"""The record of an audit as text and as JSON, with the same content and without a clock.

print(as_text(record)); print(as_json(record))
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from checkers.audit.markdown import VALIDATION
from checkers.audit.model import Record, Severity, Status


def as_json(record: Record) -> str:
    """The record as one JSON document; the same record gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(as_data(record)), indent=2).decode() + "\n"


def as_data(record: Record) -> dict[str, Any]:
    """The record as plain data, as the JSON Schema ``audit`` says."""
    data: dict[str, Any] = msgspec.to_builtins(record)
    return data


def as_text(record: Record) -> str:
    """The record for a terminal."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Record) -> Iterator[str]:
    yield f"VERDICT  {record.verdict}"
    about = sum(file.status != "unknown" for file in record.files)
    yield f"case     {len(record.files)} files read, {about} of them about locks"
    yield ""
    yield "DIMENSIONS"
    for name, row in record.dimensions.items():
        yield f"  {name:<14} {row.status:<8} {', '.join(row.difference) or _seen(row.evidence)}"
    yield ""
    yield "EVIDENCE"
    for item in record.evidence:
        yield f"  VERIFIED {item.dimension}: {item.path}:{item.line}: {item.says}"
    for name, row in record.dimensions.items():
        if row.status == Status.UNKNOWN:
            yield f"  UNKNOWN  {name}: nothing seen that shows: {row.expected}"
    findings = record.findings
    yield ""
    yield f"FINDINGS ({len(findings)})"
    for severity in Severity:
        for finding in (f for f in findings if f.severity == severity):
            yield ""
            where = f"{finding.path}:{finding.line}:{finding.column}"
            yield f"  {severity.upper()} {finding.rule} {finding.dimension} {where}"
            yield f"    {finding.says}"
            for number, step in enumerate(finding.interleaving, 1):
                yield f"      {number}. {step}"
            yield f"    fix: {finding.fix}"
            if finding.replay:
                yield f"    again: {finding.replay}"
    if findings:
        yield ""
        yield f"PROOF  {VALIDATION}"
    yield from _rest(record)


def _seen(evidence: tuple[str, ...]) -> str:
    return f"{len(evidence)} pieces of evidence" if evidence else "nothing to go by"


def _rest(record: Record) -> Iterator[str]:
    if record.exceptions or record.refused_exceptions:
        yield ""
        yield f"EXCEPTIONS (on {record.as_of})"
        for item in record.exceptions:
            f = item.finding
            yield f"  {f.rule} {f.path}:{f.line} until {item.until}: {item.reason}"
        for refused in record.refused_exceptions:
            yield f"  {refused}"
    if record.known:
        yield ""
        yield f"KNOWN BY THE BASELINE ({len(record.known)})"
        for known in record.known:
            yield f"  {known.rule} {known.path}:{known.line}"
    if record.unread:
        yield ""
        yield f"NOT READ ({len(record.unread)})"
        for unread in record.unread:
            yield f"  {unread.path}: {unread.why}"
