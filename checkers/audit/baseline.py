"""A baseline: findings that were there when a team began, so that only new ones fail.

    lockhavoc audit app/ --write-baseline audit-baseline.json
    lockhavoc audit app/ --baseline audit-baseline.json

A finding is known by its rule, its file and the text of its line, so lines may move; of equal lines
in one file as many are known as there were.  What is known does not fail, is listed, and keeps its
dimensions from being ok.

Traps: a baseline is no exception, it has no reason and no end; it only tells old from new.  A line
that is edited makes its finding new, which is the moment to mend it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from checkers.audit.model import Finding
from harness.core.errors import UserError

SCHEMA = "lockhavoc/audit-baseline/1"


class Known(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One known finding; ``count`` of the same."""

    path: str
    rule: str
    fingerprint: str
    count: int = 1


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A baseline file."""

    schema: str
    known: tuple[Known, ...] = ()


NONE = Baseline(SCHEMA)


def fingerprint(finding: Finding, text: str) -> str:
    """What a finding is known by, wherever its line has moved."""
    lines = text.splitlines()
    line = lines[finding.line - 1] if 0 < finding.line <= len(lines) else finding.says
    source = "\0".join((finding.rule, finding.path, " ".join(line.split())))
    return hashlib.sha256(source.encode()).hexdigest()[:32]


def marked(findings: Iterable[Finding], texts: Mapping[str, str]) -> list[Finding]:
    """The findings with their fingerprints."""
    return [
        msgspec.structs.replace(f, fingerprint=fingerprint(f, texts.get(f.path, "")))
        for f in findings
    ]


def split(findings: Iterable[Finding], baseline: Baseline) -> tuple[list[Finding], list[Finding]]:
    """(new findings, known ones)."""
    left = Counter({(k.path, k.rule, k.fingerprint): k.count for k in baseline.known})
    new, known = [], []
    for finding in findings:
        key = (finding.path, finding.rule, finding.fingerprint)
        if left[key] > 0:
            left[key] -= 1
            known.append(finding)
        else:
            new.append(finding)
    return new, known


def of(findings: Iterable[Finding]) -> bytes:
    """The bytes of a baseline that knows these findings."""
    counted = Counter((f.path, f.rule, f.fingerprint) for f in findings)
    known = tuple(sorted(Known(*key, count) for key, count in counted.items()))
    data = msgspec.json.encode(Baseline(SCHEMA, known))
    return msgspec.json.format(data, indent=2) + b"\n"


def load(path: Path) -> Baseline:
    """The baseline in a file; UserError where it is none."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except (OSError, msgspec.MsgspecError) as error:
        raise UserError(
            f"--baseline {path}: cannot be read: {error}; write it with --write-baseline {path}"
        ) from error
    if found.schema != SCHEMA:
        raise UserError(f"--baseline {path}: schema is {found.schema!r}, it must be {SCHEMA!r}")
    return found
