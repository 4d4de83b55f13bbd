"""The record of an audit as Markdown, for a review, an issue or a job summary.

    print(as_markdown(record))

Traps: names of files and words of comments come from the audited code; they are escaped, so that
they can neither end a table nor become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from checkers.audit.model import Finding, Record, Status

CLOSURE = (
    "Closed when each dimension is ok with evidence or under an exception that still runs, has an "
    "owner, and no finding is open. A status word or a promise is no evidence."
)

VALIDATION = (
    "lockhavoc audit generate PATHS --into proofs writes a test, a scenario and queries for these "
    "findings: each fails now and passes when the fix is right."
)


def as_markdown(record: Record) -> str:
    """All sections of the report; the same record gives the same bytes."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Record) -> Iterator[str]:
    findings = record.findings
    about = sum(file.status != "unknown" for file in record.files)
    yield f"# Ownership audit: {record.verdict}\n"
    yield f"{len(record.files)} files were read, {about} of them are about locks.\n"
    yield "## Dimensions\n"
    rows = [
        (name, row.status, row.expected, ", ".join(row.difference) or "none seen", row.owner)
        for name, row in record.dimensions.items()
    ]
    yield from _table(("dimension", "state", "expected", "difference", "owner"), rows)
    yield "\n## Evidence\n"
    for item in record.evidence:
        yield f"- VERIFIED {item.dimension}: {_text(f'{item.path}:{item.line}: {item.says}')}"
    for name, row in record.dimensions.items():
        if row.status == Status.UNKNOWN:
            yield f"- UNKNOWN {name}: nothing seen that shows: {_text(row.expected)}"
    yield f"\n## Findings ({len(findings)})\n"
    for finding in findings:
        yield from _finding(finding)
    if findings:
        yield "## Required actions, what closes most risk first\n"
        for number, finding in enumerate(findings, 1):
            owner = record.dimensions[finding.dimension].owner
            where = _text(f"{finding.path}:{finding.line}")
            yield f"{number}. {finding.dimension} ({owner}), {where}: {_text(finding.fix)}"
        yield ""
    if findings:
        yield f"## Deterministic validation\n\n{VALIDATION}\n"
    yield "## Evidence boundaries\n"
    yield from (f"- {_text(words)}" for words in boundaries(record))
    yield ""
    yield f"## Closure rule\n\n{CLOSURE}"


def _finding(finding: Finding) -> Iterator[str]:
    where = _text(f"{finding.path}:{finding.line}")
    yield f"### {finding.severity}: {finding.rule}, {finding.dimension}, {where}\n"
    yield f"{_text(finding.says)}\n"
    yield from (f"{n}. {_text(step)}" for n, step in enumerate(finding.interleaving, 1))
    yield f"\nFix: {_text(finding.fix)}\n"
    if finding.replay:
        yield f"Again: {_text(finding.replay)}\n"


def boundaries(record: Record) -> list[str]:
    """What was not seen, and what was seen and is not counted."""
    found = ["Files were read; nothing was run for this. A scenario decides what they leave open."]
    found += [f"Not read: {item.path}: {item.why}" for item in record.unread]
    for excepted in record.exceptions:
        f = excepted.finding
        words = f"{f.rule} at {f.path}:{f.line} until {excepted.until}: {excepted.reason}"
        found.append(f"Exception (on {record.as_of}): {words}")
    found += [f"Known by the baseline: {f.rule} at {f.path}:{f.line}" for f in record.known]
    return [*found, *record.refused_exceptions]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield f"| {' | '.join(_text(cell) for cell in row)} |"


def _text(words: str) -> str:
    """Words without a meaning in Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!&$@])", r"\\\1", " ".join(words.split()))
