"""The findings of an audit as SARIF 2.1.0, for code scanning and editors.

    text = as_sarif(record)

Source of the format: OASIS, Static Analysis Results Interchange Format 2.1.0.

Traps: SARIF has no word for *unknown*; what was not read stands among the notifications, and the
verdict and the five dimensions in the properties of the run.  Columns would have to be UTF-16 code
units, so regions are whole lines.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from checkers.audit.model import Excepted, Finding, Record, Severity
from checkers.audit.rules.registry import RULES

_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
}


def as_sarif(record: Record) -> str:
    """One SARIF log with one run; the same record gives the same bytes."""
    names = RULES.names()
    results = [_result(finding, names) for finding in record.findings]
    results += [_excepted(item, names) for item in record.exceptions]
    results += [{**_result(known, names), "baselineState": "unchanged"} for known in record.known]
    notifications = [
        {
            "level": "warning",
            "message": {"text": f"not read: {item.why}"},
            "locations": [{"physicalLocation": {"artifactLocation": _where(item.path)}}],
        }
        for item in record.unread
    ]
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "lockhavoc", "rules": [_rule(name) for name in names]}},
        "columnKind": "utf16CodeUnits",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "results": results,
        "properties": {
            "verdict": record.verdict,
            "dimensions": {name: row.status for name, row in record.dimensions.items()},
        },
    }
    log = {"version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _rule(name: str) -> dict[str, Any]:
    rule = RULES.load(name)
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": "; ".join(rule.interleaving)},
        "help": {"text": rule.fixes[""]},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.kind, str(rule.dimension)]},
    }


def _result(finding: Finding, names: list[str]) -> dict[str, Any]:
    region = {"startLine": finding.line, "endLine": finding.end_line}
    place = {"artifactLocation": _where(finding.path), "region": region}
    return {
        "ruleId": finding.rule,
        "ruleIndex": names.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.says}. Fix: {finding.fix}"},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"lockhavocFinding/v1": finding.fingerprint},
        "properties": {"dimension": str(finding.dimension), "kind": finding.kind},
    }


def _excepted(item: Excepted, names: list[str]) -> dict[str, Any]:
    words = f"until {item.until}: {item.reason}"
    suppression = {"kind": "inSource", "status": "accepted", "justification": words}
    return {**_result(item.finding, names), "suppressions": [suppression]}


def _where(path: str) -> dict[str, str]:
    return {"uri": quote(path) if not path.startswith("/") else "file://" + quote(path)}
