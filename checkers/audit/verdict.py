"""From facts to a record: findings, evidence, the five dimensions, one verdict.

    record = judge(read(paths), as_of=datetime.date(2026, 11, 30))
    record.verdict                      # "NOT READY TO CLOSE"

READY TO CLOSE needs all five dimensions ok, with evidence.  Reading code alone seldom gives that:
recovery is decided by a run, so an audit of a flawless file says UNKNOWN, and why.

Traps: a file with no fact about a lock is unknown; it has not passed anything.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import TypeVar

from checkers.audit import baseline as baselines
from checkers.audit.model import (
    SCHEMA,
    Dimension,
    DimensionRecord,
    Evidence,
    Fact,
    FileRecord,
    Finding,
    Record,
    Status,
)
from checkers.audit.read import Inputs
from checkers.audit.rule import seconds
from checkers.audit.rules.registry import RULES
from checkers.audit.suppress import split
from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, EXIT_VIOLATION

_Placed = TypeVar("_Placed", Finding, Evidence)
READY, NOT_READY, UNKNOWN = "READY TO CLOSE", "NOT READY TO CLOSE", "UNKNOWN"
EXPECTED = {
    Dimension.IDENTITY: "each acquisition has a name of its own, checked by the server",
    Dimension.LEASE: "a lease set in the step that takes the lock, longer than the work or renewed",
    Dimension.FENCING: "each protected write carries a token, and the resource refuses older ones",
    Dimension.RELEASE_RETRY: "released on every way out, by its owner only; waits are bounded",
    Dimension.RECOVERY: "after a death or a restart somebody gets the lock within a known time",
}
_ABOUT_LOCKS = {"lock", "grant", "release", "renew", "anomaly", "proof", "log", "log-read"}


def judge(
    inputs: Inputs, *, as_of: datetime.date, baseline: baselines.Baseline = baselines.NONE
) -> Record:
    """The record of an audit; ``as_of`` is the day for which exceptions must still hold."""
    found: list[Finding] = []
    for name in RULES.names():
        found += RULES.load(name).findings(inputs.facts)
    order = sorted(set(found), key=lambda f: (f.path, f.line, f.column, f.rule))
    stand, excepted, refused = split(baselines.marked(order, inputs.texts), inputs.texts, as_of)
    stand, known = baselines.split(stand, baseline)
    evidence = sorted(
        set(_evidence(inputs.facts.all)), key=lambda e: (e.dimension, e.path, e.line, e.says)
    )
    # What is under an exception or in a baseline is no gap that fails, and nothing was proven.
    accepted = [*(e.finding for e in excepted), *known]
    open_dimensions = {(f.path, d) for f in accepted for d in _dimensions(f)}
    about = {f.place.path for f in inputs.facts.all if f.kind in _ABOUT_LOCKS}
    gaps_of, seen_in = _by_path(stand), _by_path(evidence)  # thousands of files: look once
    files = tuple(
        _file(
            path,
            inputs.digests[path],
            path in about,
            gaps_of.get(path, []),
            seen_in.get(path, []),
            open_dimensions,
        )
        for path in sorted(inputs.texts)
    )
    dimensions = {
        str(d): _dimension(d, stand, evidence, {x for _, x in open_dimensions}) for d in Dimension
    }
    statuses = {record.status for record in dimensions.values()}
    verdict = READY if statuses == {Status.OK} else UNKNOWN
    if Status.GAP in statuses:
        verdict = NOT_READY
    return Record(
        schema=SCHEMA,
        verdict=verdict,
        dimensions=dimensions,
        files=files,
        evidence=tuple(evidence),
        exceptions=tuple(excepted),
        refused_exceptions=tuple(refused),
        unread=tuple(sorted(inputs.unread, key=lambda u: u.path)),
        known=tuple(known),
        as_of=as_of.isoformat() if excepted or refused else "",
    )


def exit_code(record: Record) -> int:
    """0 ready, 1 findings, which win over everything that is unknown, else 2."""
    if record.findings:
        return EXIT_VIOLATION
    return EXIT_AS_CLAIMED if record.verdict == READY else EXIT_UNKNOWN


def _dimensions(finding: Finding) -> set[Dimension]:
    return {finding.dimension, *finding.also}


def _evidence(facts: Iterable[Fact]) -> Iterator[Evidence]:
    """What speaks for the lock: only what was seen, and where."""
    for fact in facts:
        path, line = fact.place.path, fact.place.line
        lease_ns = fact.get("lease_ns")
        if fact.kind == "release" and fact.get("guard") and not fact.get("boolean"):
            says = f"release guarded by {fact.get('guard')}"
            yield Evidence(Dimension.IDENTITY, path, line, says)
            if fact.get("in_finally"):
                says = "released by its owner only, in a finally"
                yield Evidence(Dimension.RELEASE_RETRY, path, line, says)
        elif fact.kind == "release" and fact.get("boolean") and fact.get("use") == "checked":
            says = "the answer of the unlock is read"
            yield Evidence(Dimension.RELEASE_RETRY, path, line, says)
        elif fact.kind == "grant" and fact.get("how") == "with" and fact.get("with_raises"):
            says = f"a with-block of {fact.get('library')}: released by its owner on every way out"
            yield Evidence(Dimension.RELEASE_RETRY, path, line, says)
            yield Evidence(Dimension.IDENTITY, path, line, f"ownership kept by {_by(fact)}")
        elif fact.kind == "lock" and fact.get("lease") == "ttl" and lease_ns:
            says = f"a lease of {seconds(lease_ns)}, set in the step that takes the lock"
            yield Evidence(Dimension.LEASE, path, line, says)
        elif fact.kind == "lock" and fact.get("lease") in ("session", "transaction"):
            says = f"bound to the {fact.get('lease')} of the server, which ends with its client"
            yield Evidence(Dimension.LEASE, path, line, says)
        elif fact.kind == "proof":
            yield Evidence(fact.get("dimension"), path, line, str(fact.get("says")))
        elif fact.kind == "write" and fact.get("fenced"):
            yield Evidence(Dimension.FENCING, path, line, "a write with a token or version")


def _by(fact: Fact) -> str:
    return f"{fact.get('library')}, whose release compares the owner on the server"


def _dimension(
    dimension: Dimension,
    findings: Iterable[Finding],
    evidence: Iterable[Evidence],
    excepted: set[Dimension],
) -> DimensionRecord:
    gaps = [f for f in findings if dimension in _dimensions(f)]
    seen = [e for e in evidence if e.dimension == dimension]
    return DimensionRecord(
        status=_status(dimension, gaps, seen, excepted),
        expected=EXPECTED[dimension],
        evidence=tuple(f"{e.path}:{e.line}: {e.says}" for e in seen),
        difference=tuple(f"{f.rule} at {f.path}:{f.line}" for f in gaps),
    )


def _status(
    dimension: Dimension,
    gaps: Iterable[Finding],
    seen: Iterable[Evidence],
    excepted: set[Dimension],
) -> Status:
    if any(dimension in _dimensions(f) for f in gaps):
        return Status.GAP
    return Status.OK if dimension not in excepted and list(seen) else Status.UNKNOWN


def _by_path(found: Iterable[_Placed]) -> dict[str, list[_Placed]]:
    """Findings or evidence by the file that they are in."""
    groups: dict[str, list[_Placed]] = {}
    for one in found:
        groups.setdefault(one.path, []).append(one)
    return groups


def _file(
    path: str,
    digest: str,
    about: bool,
    own: list[Finding],
    seen: list[Evidence],
    excepted: set[tuple[str, Dimension]],
) -> FileRecord:
    open_here = {d for p, d in excepted if p == path}
    return FileRecord(
        path=path,
        status="gap" if own else "no_gap" if about else "unknown",
        dimensions={
            str(d): _status(d, own, [e for e in seen if e.dimension == d], open_here)
            for d in Dimension
        },
        findings=tuple(own),
        digest=digest,
    )
