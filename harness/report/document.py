"""The document of a finished run: what ``results.json`` holds and every report is made of.

    report = RunReport(name="redis-holder-pause", claim=ClaimView(verdict="violation"), ...)
    outcome, exit_code, says = judge_claim(report.claim, report.results)

A scenario *claims* something; the run is measured against that.  ``judge_claim`` is the whole
table, and nothing else in the project decides what an exit code of a run is:

| claim       | results                                           | outcome            | exit |
|-------------|---------------------------------------------------|--------------------|------|
| holds       | some FALSE                                        | violation          | 1    |
| holds       | no FALSE, some UNKNOWN, or no results at all      | unknown            | 2    |
| holds       | all TRUE                                          | as-claimed         | 0    |
| violation   | a checker of ``by`` (any, if empty) is FALSE      | as-claimed         | 0    |
| violation   | only others are FALSE                             | other-than-claimed | 1    |
| violation   | no FALSE, the run was vacuous                     | unknown            | 2    |
| violation   | no FALSE, a checker of ``by`` is UNKNOWN or absent| unknown            | 2    |
| violation   | no FALSE, all of ``by`` are TRUE                  | canary-passed      | 1    |
| may-fail    | some FALSE                                        | as-claimed         | 0    |
| may-fail    | no FALSE, some UNKNOWN, or no results at all      | unknown            | 2    |
| may-fail    | all TRUE                                          | as-claimed         | 0    |

FALSE wins over UNKNOWN everywhere.  Results of liveness count like those of safety, and are shown
apart.  A canary that passes is the worst news of all, since it means that the harness is blind.

With ``holds``, checkers named in ``tolerates`` are expected to fail and count neither way: a
fenced lock whose paused holder still *believes* in its lease does no harm.

Trap: a result that does not apply (``stats["applies"] is False``: fencing without a resource)
neither proves nor doubts anything and is left out, unless the claim names it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, EXIT_VIOLATION
from harness.core.protocols import FaultWindow
from harness.core.result import Result, Valid, merge
from harness.report.escape import mask_all, mask_argv

SCHEMA = "lockhavoc/results/1"

Outcome = Literal[
    "as-claimed",
    "violation",
    "other-than-claimed",
    "canary-passed",
    "unknown",
    "harness-failure",
    "interrupted",
]
VACUITY = "vacuity"


class Claim(Protocol):
    """What a scenario states; ``harness.scenario.Claim`` is one."""

    @property
    def verdict(self) -> str: ...

    @property
    def by(self) -> Sequence[str]: ...

    @property
    def tolerates(self) -> Sequence[str]: ...

    @property
    def why(self) -> str: ...


class ClaimView(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A claim as data."""

    verdict: Literal["holds", "may-fail", "violation"] = "holds"
    by: tuple[str, ...] = ()
    tolerates: tuple[str, ...] = ()
    why: str = ""

    @classmethod
    def of(cls, claim: Claim) -> ClaimView:
        """From a scenario's claim."""
        fields = {
            "verdict": claim.verdict,
            "by": list(claim.by),
            "tolerates": list(claim.tolerates),
            "why": claim.why,
        }
        return msgspec.convert(fields, cls)


class Verdicts(msgspec.Struct, frozen=True, kw_only=True):
    """Merged verdicts: safety and liveness are never mixed into one word."""

    safety: Valid = Valid.UNKNOWN
    liveness: Valid = Valid.UNKNOWN

    @classmethod
    def of(cls, results: Iterable[Result]) -> Verdicts:
        """Merges the results that apply; a kind without any is UNKNOWN."""
        found = [result for result in results if applies(result)]
        return cls(
            safety=merge(result.valid for result in found if result.safety),
            liveness=merge(result.valid for result in found if not result.safety),
        )


class RunReport(msgspec.Struct, kw_only=True):
    """Everything a report says about one run.

    started: ISO 8601, UTC.  scenario: the scenario's digest.  ops: number of events in the
    history.  replay: the command line that repeats the run's choices.  failures: of the harness
    itself.  stats: facts that no report needs to know by name.
    """

    schema: str = SCHEMA
    name: str
    run_dir: str = ""
    seed: int | None = None
    runtime: str = ""
    backend: str = ""
    library: str = ""
    scenario: str = ""
    claim: ClaimView = ClaimView()
    verdict: Outcome = "unknown"
    says: str = ""
    valid: Verdicts = Verdicts()
    exit_code: int = EXIT_UNKNOWN
    results: list[Result] = []
    faults: list[FaultWindow] = []
    versions: dict[str, str] = {}
    started: str = ""
    duration_ms: int = 0
    ops: int = 0
    torn: bool = False
    replay: list[str] = []
    failures: list[str] = []
    stats: dict[str, Any] = {}


def applies(result: Result) -> bool:
    """False for a checker that says it has nothing to do with this run."""
    return result.stats.get("applies") is not False


def judge_claim(claim: Claim, results: Sequence[Result]) -> tuple[Outcome, int, str]:
    """Measures results against a claim: (outcome, exit code, one sentence).  Table above."""
    named = set(claim.by)
    tolerated = set(claim.tolerates) if claim.verdict == "holds" else set()
    counted = [
        result
        for result in results
        if (applies(result) or result.checker in named) and result.checker not in tolerated
    ]
    false = [result for result in counted if result.valid == Valid.FALSE]
    unknown = [result for result in counted if result.valid == Valid.UNKNOWN]
    if claim.verdict == "violation":
        return _judge_violation(claim, counted, false, unknown)
    if false and claim.verdict == "holds":
        return "violation", EXIT_VIOLATION, f"claimed to hold, but {_names(false)} found violations"
    if false:
        return "as-claimed", EXIT_AS_CLAIMED, f"may fail, and it did: {_names(false)}"
    if unknown or not counted:
        return "unknown", EXIT_UNKNOWN, _doubt(unknown)
    return "as-claimed", EXIT_AS_CLAIMED, f"no violation found by {len(counted)} checkers"


def _judge_violation(
    claim: Claim, counted: Sequence[Result], false: Sequence[Result], unknown: Sequence[Result]
) -> tuple[Outcome, int, str]:
    by = set(claim.by) or {result.checker for result in counted}
    expected = [result for result in false if result.checker in by]
    if expected:
        return "as-claimed", EXIT_AS_CLAIMED, f"violation found, as claimed, by {_names(expected)}"
    if false:
        return (
            "other-than-claimed",
            EXIT_VIOLATION,
            f"claimed a violation by {_list(sorted(by))}, but only {_names(false)} found one",
        )
    vacuous = [result for result in unknown if result.checker == VACUITY]
    missing = sorted(by - {result.checker for result in counted})
    doubtful = vacuous or [result for result in unknown if result.checker in by]
    if doubtful or not counted:
        return "unknown", EXIT_UNKNOWN, _doubt(doubtful)
    if missing:
        return "unknown", EXIT_UNKNOWN, f"the claim names {_list(missing)}, which did not run"
    return (
        "canary-passed",
        EXIT_VIOLATION,
        "claimed a violation, but none was found: either the lock is better than claimed or the "
        "harness is blind",
    )


def _doubt(unknown: Sequence[Result]) -> str:
    if not unknown:
        return "nothing was checked"
    first = unknown[0]
    reason = f" ({first.says})" if first.says else ""
    return f"cannot tell: {_names(unknown)} unknown{reason}"


def _names(results: Iterable[Result]) -> str:
    return _list([result.checker for result in results])


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


def masked(report: RunReport) -> RunReport:
    """The same report without secrets, for every file that leaves the machine."""
    data = mask_all(msgspec.to_builtins(report))
    data["replay"] = mask_argv(report.replay)
    return msgspec.convert(data, RunReport)


def document(report: RunReport) -> bytes:
    """``results.json``: the report without secrets, as indented JSON with a newline."""
    return msgspec.json.format(msgspec.json.encode(masked(report)), indent=2) + b"\n"


def load(data: bytes) -> RunReport:
    """Reads what ``document`` wrote; msgspec.DecodeError if it is something else."""
    return msgspec.json.decode(data, type=RunReport)


def replay_line(report: RunReport) -> str:
    """The command to paste, quoted for a POSIX shell and without secrets."""
    return shlex.join(mask_argv(report.replay))
