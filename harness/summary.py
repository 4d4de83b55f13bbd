"""From results to reports: assembles the run's report, writes its files, prints it."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import msgspec

from checkers.interchange.porcupine_view import porcupine_data
from harness import store
from harness.core.errors import EXIT_HARNESS, EXIT_INTERRUPTED, EXIT_VIOLATION
from harness.core.history import History
from harness.core.limits import PORCUPINE_OPS_MAX
from harness.core.protocols import CheckContext
from harness.core.result import Result
from harness.plan import Plan
from harness.report.badge import badge
from harness.report.document import ClaimView, RunReport, Verdicts, document, judge_claim, masked
from harness.report.html import html_of
from harness.report.junit import junit
from harness.report.markdown import summary
from harness.report.text import print_text, render_text
from harness.report.timeline import timeline
from harness.report.trace import trace
from harness.scenario import Scenario


def make_report(
    scenario: Scenario,
    plan: Plan,
    environment: store.Environment,
    *,
    run_dir: Path,
    history: History,
    context: CheckContext,
    results: list[Result],
    interrupted: bool,
) -> RunReport:
    """Judges the results against the claim and puts everything into one document.

    A violation wins over every other ending; then a broken harness; then an interruption.
    """
    verdict, exit_code, says = judge_claim(scenario.claim, results)
    if exit_code != EXIT_VIOLATION and interrupted:
        verdict, exit_code, says = "interrupted", EXIT_INTERRUPTED, "interrupted before its end"
    elif exit_code != EXIT_VIOLATION and context.failures:
        verdict, exit_code, says = "harness-failure", EXIT_HARNESS, context.failures[0]
    return RunReport(
        name=scenario.name,
        run_dir=str(run_dir),
        seed=plan.seed,
        runtime=environment.runtime,
        backend=scenario.backend.name,
        library=scenario.client.library,
        scenario=scenario.digest(),
        claim=ClaimView.of(scenario.claim),
        verdict=verdict,
        says=says,
        valid=Verdicts.of(results),
        exit_code=exit_code,
        results=results,
        faults=context.faults,
        versions=environment.versions,
        started=environment.started,
        duration_ms=environment.duration_ms,
        ops=len(history),
        torn=history.torn,
        replay=environment.replay,
        failures=context.failures,
        stats={"loose_stamps": environment.loose_stamps},
    )


Evidence = tuple[History, CheckContext]


def write_reports(run_dir: Path, report: RunReport, evidence: Callable[[], Evidence]) -> None:
    """Everything that is made from a judged run; docs/results.md has the list of the files.

    The verdict is on disk before ``evidence`` is asked for and the page is begun: a bug there must
    not cost a result.
    """
    store.write(run_dir / store.RESULTS, document(report))
    store.write(run_dir / "report.txt", render_text(report))
    store.write(run_dir / "summary.md", summary([report]))
    store.write(run_dir / "junit.xml", junit([report]))
    store.write(run_dir / "badge.svg", badge(report.verdict))
    try:
        _write_pictures(run_dir, report, *evidence())
    except Exception:
        (run_dir / store.REPORT).unlink(missing_ok=True)
        click.echo(f"lockhavoc: {run_dir / store.REPORT} could not be made; a bug:", err=True)
        click.echo(traceback.format_exc(), err=True)


def _write_pictures(
    run_dir: Path, report: RunReport, history: History, context: CheckContext
) -> None:
    """report.html, and the same for other viewers: trace.json, porcupine.json."""
    # Containers beside the servers have logs too: the proxy, and those that hold a network.
    logs = [path.stem for path in (run_dir / "nodes").glob("*.log")]
    nodes = sorted(name for name in logs if name != "toxiproxy" and not name.startswith("net-"))
    data = timeline(report, history, context, nodes=nodes)
    store.write(run_dir / store.REPORT, html_of(report, data))
    store.write(run_dir / "trace.json", trace(report, data))
    if len(history.intervals()) <= PORCUPINE_OPS_MAX:
        anomalies = [anomaly for result in report.results for anomaly in result.anomalies]
        store.write_json(run_dir / "porcupine.json", porcupine_data(history, anomalies=anomalies))


def print_report(report: RunReport, *, brief: bool) -> None:
    """The report on stdout; ``brief`` is for one of many."""
    if not brief:
        print_text(report)
        click.echo(f"\nreport: {report.run_dir}/{store.REPORT}")
        return
    click.echo(f"{report.name}: {report.verdict} - {report.says}")
    for result in report.results:
        for anomaly in result.anomalies[:1]:
            click.echo(f"    {result.checker}: {anomaly.says}")


def print_campaign(
    reports: Sequence[RunReport], failed: Sequence[tuple[str, str]], *, as_json: bool
) -> None:
    """A table over several runs, or all of their documents as one JSON document."""
    if as_json:
        runs = [msgspec.to_builtins(masked(report)) for report in reports]
        problems = [{"name": name, "error": error} for name, error in failed]
        only = runs[0] if len(runs) == 1 and not problems else {"runs": runs, "failed": problems}
        click.echo(json.dumps(only, indent=2))
        return
    if len(reports) + len(failed) < 2:
        return
    rows: list[tuple[str, ...]] = []
    for r in reports:
        where = f"{r.run_dir}/{store.REPORT}"
        rows.append((r.name, r.claim.verdict, r.verdict, str(len(r.faults)), str(r.ops), where))
    rows += [(name, "", "did not run", "", "", "") for name, _ in failed]
    head = ("scenario", "claim", "verdict", "faults", "events", "report")
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    click.echo("")
    for row in [head, *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())
    good = sum(report.exit_code == 0 for report in reports)
    click.echo(f"\n{good} of {len(reports) + len(failed)} as claimed")
