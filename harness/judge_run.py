"""``lockhavoc check RUN``: judges a stored run again, with no servers and no Docker.

It also reads the run of a harness that was killed: the journal as far as it got, the faults that
the ledger knows, the resource's own record.
"""

from __future__ import annotations

from pathlib import Path

from harness import store
from harness.check import analyse, load_run
from harness.report.document import RunReport
from harness.resource import recorded
from harness.summary import make_report, print_campaign, print_report, write_reports


def judge_run(run_dir: Path, *, write: bool = True) -> RunReport:
    """The report of a stored run, made anew from its history; UserError if it is no run."""
    run_dir = run_dir.resolve()
    scenario, plan, environment, history, context = load_run(run_dir)
    if not (run_dir / store.RESOURCE).exists():
        context.resource = recorded(run_dir, environment.start_ns)
    previous = run_dir / store.RESULTS
    cut_short = not previous.exists()
    if cut_short:
        context.failures = [*context.failures, "the run was cut short: its harness died"]
    results = analyse(history, context)
    report = make_report(
        scenario,
        plan,
        environment,
        run_dir=run_dir,
        history=history,
        context=context,
        results=results,
        interrupted=any("interrupted by" in failure for failure in context.failures),
    )
    if write and not cut_short:
        write_reports(run_dir, report, lambda: (history, context))
    return report


def show_run(run_dir: Path, *, as_json: bool) -> int:
    """Judges a stored run, prints its report and returns the exit code."""
    report = judge_run(run_dir)
    if as_json:
        print_campaign([report], [], as_json=True)
    else:
        print_report(report, brief=False)
    return report.exit_code
