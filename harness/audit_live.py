"""``lockhavoc audit history`` and ``audit attach``: what was seen, as findings and as evidence.

    lockhavoc audit history history.edn
    lockhavoc audit attach billing.case store/latest --for A-ID-1

A run is judged again from its history; what ``results.json`` says is compared with that and never
believed.  ``--for RULE`` makes the run the validation of a finding: it must claim that the lock
holds, be as claimed, and have met a fault that the failure needs, with evidence that it bit.

Traps: a run is evidence for the library and the scenario that it drove, which the entry keeps.
"""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from checkers.audit import Record, audit
from checkers.audit.closing import seen_summary
from checkers.audit.live.facts import result_facts
from checkers.audit.live.histories import Seen, digest_of, history_seen
from checkers.audit.live.validation import unmet
from checkers.audit.rules.registry import RULES
from checkers.audit.verdict import exit_code
from harness import store
from harness.core.errors import EXIT_AS_CLAIMED, UserError
from harness.judge_run import judge_run
from harness.report.document import RunReport, load

NEVER = datetime.date(1, 1, 1)  # histories have no exceptions that could end
DIGESTED = (store.PLAN, store.ENV, store.HISTORY, store.RESOURCE, "faults.jsonl", store.RESULTS)


def is_run(path: Path) -> bool:
    """Whether a path is the directory of a run."""
    return path.is_dir() and (path / store.PLAN).exists()


def run_seen(run_dir: Path) -> tuple[Seen, RunReport]:
    """A stored run, judged again; UserError if its own results say something else."""
    report = judge_run(run_dir, write=False)
    _compare(run_dir, report)
    history = run_dir / store.HISTORY
    first = 2 if _has_header(history) else 1
    facts = result_facts(
        history.as_posix(),
        report.results,
        lambda index: index + first,
        replay=shlex.join(report.replay),
        faults=report.faults,
    )
    return Seen(history.as_posix(), digest_of(history), tuple(facts)), report


def _has_header(history: Path) -> bool:
    if not history.exists():
        raise UserError(f"{history}: is missing; a run without its history shows nothing")
    with history.open("rb") as file:
        return b'"schema"' in file.readline()


def _compare(run_dir: Path, report: RunReport) -> None:
    """Refuses a run whose results.json is not what its history gives."""
    path = run_dir / store.RESULTS
    if not path.exists():
        return
    stored = load(path.read_bytes())
    now = {result.checker: result.valid for result in report.results}
    wrong = [
        f"{result.checker}: it says {result.valid}, the history gives {now[result.checker]}"
        for result in stored.results
        if result.checker in now and now[result.checker] != result.valid
    ]
    if wrong:
        raise UserError(f"{path}: is not what the run's history gives; it is no evidence", wrong)


def _models(models: str | None) -> list[str]:
    return [name.strip() for name in (models or "").split(",") if name.strip()]


def seen_of(path: Path, models: str | None = None, ttl_ms: float | None = None) -> Seen:
    """A run or a history, judged."""
    if is_run(path):
        return run_seen(path)[0]
    if path.is_dir():
        raise UserError(f"{path}: is neither a run (it has no {store.PLAN}) nor a file")
    return history_seen(path, _models(models), ttl_ms=ttl_ms)


def attachment(path: Path, record: Record, rules: Sequence[str]) -> dict[str, Any]:
    """What a case keeps of a run, history or log."""
    data: dict[str, Any] = {"path": str(path), **seen_summary(record)}
    if not is_run(path):
        if rules:
            raise UserError(
                f"--for {rules[0]}: {path} is no run of a scenario; only a run validates a finding"
            )
        return data
    _, report = run_seen(path)
    for rule in rules:
        if rule not in RULES.names():
            raise UserError(f"--for {rule}: there is no such rule")
        gaps = unmet(rule, report)
        if gaps:
            raise UserError(f"{path} does not validate {rule}", gaps)
    digests = {n: digest_of(path / n) for n in DIGESTED if (path / n).exists()}
    return {
        **data,
        "name": report.name,
        "library": report.library,
        "backend": report.backend,
        "scenario": report.scenario,
        "claim": report.claim.verdict,
        "outcome": report.verdict,
        "faults": sorted({fault.kind for fault in report.faults if fault.bit}),
        "digests": digests,
        "replay": shlex.join(report.replay),
        "validates": list(rules),
    }


def history_command(writers: dict[str, Callable[[Record], str]]) -> click.Command:
    """The command ``history``, which writes in the formats of the audit."""

    @click.command("history")
    @click.argument("history", type=click.Path(exists=True, path_type=Path))
    @click.option("--model", help="Models to judge by, with commas; default: by what is in it.")
    @click.option("--ttl-ms", type=float, help="Length of the lease, if the header has none.")
    @click.option(
        "--format", "form", type=click.Choice(sorted(writers)), default="text", show_default=True
    )
    @click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
    def command(
        history: Path, model: str | None, ttl_ms: float | None, form: str, as_json: bool
    ) -> int:
        """Judges a HISTORY or a stored run, with findings like those of code.

        A history is JSON lines, Jepsen's EDN or Parquet, also packed with gzip; a log of an
        application is given to ``lockhavoc audit files``.

        \b
        Examples:
          lockhavoc audit history store/latest
          lockhavoc audit history jepsen/history.edn
          lockhavoc audit history locks.jsonl --ttl-ms 10000 --json
        """
        record = audit([], as_of=NEVER, seen=[seen_of(history, model, ttl_ms)])
        click.echo(writers["json" if as_json else form](record), nl=False)
        return exit_code(record)

    return command


def attach_command(append: Callable[..., int]) -> click.Command:
    """The command ``attach``; ``append`` writes an entry of a case."""

    @click.command("attach")
    @click.argument("case", type=click.Path(dir_okay=False, path_type=Path))
    @click.argument("evidence", type=click.Path(exists=True, path_type=Path))
    @click.option("--for", "rules", multiple=True, help="Rule of a finding that the run validates.")
    @click.option("--model", help="Models to judge a history by.")
    @click.option("--ttl-ms", type=float, help="Length of the lease in a history.")
    @click.option("--corrects", type=click.IntRange(1), help="The entry that this one supersedes.")
    def command(
        case: Path,
        evidence: Path,
        rules: Sequence[str],
        model: str | None,
        ttl_ms: float | None,
        corrects: int | None,
    ) -> int:
        """Judges EVIDENCE, a stored run or a history, and keeps what it shows in the CASE.

        What a checker found wrong is a finding of the case until an entry corrects it; what it
        found right is evidence for its dimension.

        \b
        Examples:
          lockhavoc audit attach billing.case store/latest
          lockhavoc audit attach billing.case store/latest --for A-ID-1
          lockhavoc audit attach billing.case jepsen/history.edn
        """
        record = audit([], as_of=NEVER, seen=[seen_of(evidence, model, ttl_ms)])
        data = attachment(evidence, record, rules)
        append(case, "attach", data, corrects)
        for finding in record.findings:
            click.echo(f"  {finding.rule} {finding.dimension}: {finding.says}")
        for item in record.evidence:
            click.echo(f"  VERIFIED {item.dimension}: {item.says}")
        code = exit_code(record)
        return code if record.findings else EXIT_AS_CLAIMED

    return command
