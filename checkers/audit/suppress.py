"""Exceptions in the source: a finding that somebody accepts, with a reason and a last day.

    r.delete(key)  # lockhavoc: except A-ID-1 until 2027-01-31: one process, moved in January

The comment stands on a line of the finding or on the line before it.  Without a reason or a day it
is refused, and the refusal is in the report; after its last day the finding is back.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping

from checkers.audit.model import Excepted, Finding

_COMMENT = re.compile(r"(?:#|//|--|;)\s*lockhavoc:\s*except\b(.*)$", re.I)
_WHOLE = re.compile(
    r"\s+(?P<rule>A-[A-Z]+-\d+)\s+until\s+(?P<until>\d{4}-\d{2}-\d{2})\s*:\s*(?P<reason>\S.*)$"
)


def split(
    findings: Iterable[Finding], texts: Mapping[str, str], as_of: datetime.date
) -> tuple[list[Finding], list[Excepted], list[str]]:
    """(findings that stand, those under an exception, refused exceptions in words)."""
    granted: dict[tuple[str, int, str], tuple[str, str]] = {}
    refused: list[str] = []
    for path in sorted(texts):
        if "lockhavoc:" not in texts[path]:
            continue
        for number, line in enumerate(texts[path].splitlines(), 1):
            comment = _COMMENT.search(line)
            if not comment:
                continue
            whole = _WHOLE.match(comment[1])
            why = "" if whole else "write: except RULE until YYYY-MM-DD: reason"
            if whole:
                try:
                    if datetime.date.fromisoformat(whole["until"]) < as_of:
                        why = f"its last day was {whole['until']}"
                except ValueError:
                    why = f"{whole['until']} is no day"
            if why or not whole:
                refused.append(f"{path}:{number}: exception refused: {why}")
                continue
            granted[path, number, whole["rule"]] = (whole["reason"].strip(), whole["until"])
    stand, excepted = [], []
    for finding in findings:
        lines = range(finding.line - 1, finding.end_line + 1)
        found = [granted[k] for n in lines if (k := (finding.path, n, finding.rule)) in granted]
        if found:
            excepted.append(Excepted(finding, *found[0]))
        else:
            stand.append(finding)
    return stand, excepted, refused
