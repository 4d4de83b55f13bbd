"""The verdict on one history file: the JSON document of ``lockhavoc check FILE --json``, and text.

    lines = lines_in(history, result.anomalies)
    verdict = of_result(result, file="history.jsonl", model="mutex", lines=lines)
    msgspec.json.encode(verdict)
    render(verdict)

Every operation that proves something is named twice: by its index, which the history gives, and by
its line in the file, where it is a text file.  ``properties`` has a verdict per question: one for
most models, *safe* and *exact* for a lease, *with-ttl* and *naive* for belief.

Trap: ``valid`` is one of three words, not a boolean, so that nobody reads "unknown" as "fine".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, EXIT_VIOLATION
from harness.core.history import History
from harness.core.result import Anomaly, Result, Side, Valid
from harness.report.escape import safe
from harness.report.text import anomaly_line, picture_lines

SCHEMA = "lockhavoc/verdict/1"
EXIT_CODES = {
    Valid.TRUE: EXIT_AS_CLAIMED,
    Valid.FALSE: EXIT_VIOLATION,
    Valid.UNKNOWN: EXIT_UNKNOWN,
}
_WORDS = {Valid.TRUE: "OK", Valid.UNKNOWN: "UNKNOWN", Valid.FALSE: "VIOLATED"}
_KEYS_SHOWN = 10


class Witness(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An event that proves something.  line: from 1; absent if the file has no lines."""

    index: int
    line: int | None = None


class Finding(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A violation."""

    kind: str
    side: Side | None = None
    key: str | None = None
    says: str = ""
    witnesses: list[Witness] = []
    overlap_ns: int | None = None
    legal_if: str | None = None
    picture: str | None = None


class Part(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The verdict on one property or one key."""

    valid: Valid
    says: str = ""
    decided_by: str = ""
    why: str = ""
    exact: bool = False
    keys: dict[str, Part] = {}


class VerdictDocument(msgspec.Struct, kw_only=True):
    """What ``check FILE`` found.  ``missing``: what an UNKNOWN would need."""

    schema: str = SCHEMA
    file: str = ""
    model: str
    valid: Valid
    exit_code: int
    says: str = ""
    decided_by: str = ""
    why: str = ""
    exact: bool = False
    missing: str | None = None
    vacuous: bool = False
    torn: bool = False
    operations: int = 0
    properties: dict[str, Part] = {}
    anomalies: list[Finding] = []
    stats: dict[str, Any] = {}


def of_result(
    result: Result, *, file: str, model: str, lines: Mapping[int, int | None]
) -> VerdictDocument:
    """The document of a result of ``checkers.check_model``.  lines: index -> line in the file."""
    stats = dict(result.stats)
    by_name = [part for part in result.sub if "key" not in part.stats]
    return VerdictDocument(
        file=file,
        model=model,
        valid=result.valid,
        exit_code=EXIT_CODES[result.valid],
        says=result.says,
        decided_by=str(stats.pop("decided_by", "")),
        why=str(stats.pop("why", "")),
        exact=bool(stats.pop("exact", False)),
        missing=stats.pop("missing", None),
        vacuous=bool(stats.pop("vacuous", False)),
        torn=bool(stats.pop("torn", False)),
        operations=int(stats.pop("operations", 0)),
        properties={part.checker: _part(part) for part in by_name or [result]},
        anomalies=[_finding(anomaly, lines) for anomaly in result.anomalies],
        stats=stats,
    )


def _part(result: Result) -> Part:
    return Part(
        valid=result.valid,
        says=result.says,
        decided_by=str(result.stats.get("decided_by", "")),
        why=str(result.stats.get("why", "")),
        exact=bool(result.stats.get("exact", False)),
        keys={
            str(part.stats.get("key", "")): _part(part)
            for part in result.sub
            if part.valid is not Valid.TRUE or len(result.sub) <= _KEYS_SHOWN
        },
    )


def lines_in(history: History, anomalies: Iterable[Anomaly]) -> dict[int, int | None]:
    """Lines of the events that anomalies name, by index."""
    wanted = {index for anomaly in anomalies for index in anomaly.ops}
    if history.lines is None or not wanted:
        return {}
    return {
        op.index: history.line(position)
        for position, op in enumerate(history.ops)
        if op.index in wanted
    }


def _finding(anomaly: Anomaly, lines: Mapping[int, int | None]) -> Finding:
    return Finding(
        kind=anomaly.kind,
        side=anomaly.side,
        key=anomaly.key,
        says=anomaly.says,
        witnesses=[Witness(index=index, line=lines.get(index)) for index in anomaly.ops],
        overlap_ns=anomaly.overlap_ns,
        legal_if=anomaly.legal_if,
        picture=anomaly.picture,
    )


def render(verdict: VerdictDocument) -> str:
    """The verdict as plain text: the first line says it all."""
    lines = [f"{_WORDS[verdict.valid]}  {safe(verdict.model)}  {safe(verdict.file)}"]
    lines.append(_found(verdict) if verdict.anomalies else safe(verdict.says))
    exact = "exact" if verdict.exact else "not exact"
    if verdict.decided_by:
        lines.append(f"decided by: {safe(verdict.decided_by)}, {exact} ({safe(verdict.why)})")
    if verdict.missing:
        lines.append(f"missing: {safe(verdict.missing)}")
    if verdict.torn:
        lines.append("the last line of the file is torn; it was left out")
    if len(verdict.properties) > 1:
        for name, part in verdict.properties.items():
            lines.append(f"  {safe(name)}: {_WORDS[part.valid].lower()}  {safe(part.says)}")
    for name, part in _keys(verdict):
        lines.append(f"  key {safe(name)}: {_WORDS[part.valid].lower()}  {safe(part.says)}")
    for number, finding in enumerate(verdict.anomalies, 1):
        lines += ["", *_finding_lines(number, verdict, finding)]
    return "\n".join(lines) + "\n"


def _found(verdict: VerdictDocument) -> str:
    """How many violations, and of which kinds the listed ones are; each is told below."""
    count = int(verdict.stats.get("violations", len(verdict.anomalies)))
    kinds = ", ".join(dict.fromkeys(finding.kind for finding in verdict.anomalies))
    return f"{count} violation{'' if count == 1 else 's'} ({safe(kinds)})"


def _keys(verdict: VerdictDocument) -> list[tuple[str, Part]]:
    """Keys of the deciding property that are not fine, a few of them."""
    first = next(iter(verdict.properties.values()), None)
    if first is None or len(first.keys) < 2:
        return []
    bad = [(name, part) for name, part in first.keys.items() if part.valid is not Valid.TRUE]
    return bad[:_KEYS_SHOWN]


def _finding_lines(number: int, verdict: VerdictDocument, finding: Finding) -> Iterable[str]:
    anomaly = Anomaly(
        kind=finding.kind,
        side=finding.side,
        key=finding.key,
        ops=[witness.index for witness in finding.witnesses],
        overlap_ns=finding.overlap_ns,
        picture=finding.picture,
    )
    yield f"{number}. {anomaly_line(Result(checker=verdict.model, valid=Valid.FALSE), anomaly)}"
    at = [str(witness.line) for witness in finding.witnesses if witness.line is not None]
    if at:
        yield f"   lines {' '.join(at)} of {safe(verdict.file)}"
    yield f"   {safe(finding.says)}"
    if finding.picture:
        yield from (f"   {line}".rstrip() for line in picture_lines(anomaly))
    if finding.legal_if:
        yield f"   legal if: {safe(finding.legal_if)}"
