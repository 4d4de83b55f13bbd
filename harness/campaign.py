"""Several runs, one after the other, and one exit code for all of them.

Order of badness: violation (or a canary that passed) wins over a harness failure, that over
unknown.  The counts are always printed, so nothing hides behind the worst.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from harness import plan as plans
from harness.core.errors import (
    EXIT_AS_CLAIMED,
    EXIT_HARNESS,
    EXIT_INTERRUPTED,
    EXIT_UNKNOWN,
    EXIT_USAGE,
    EXIT_VIOLATION,
    LockhavocError,
    UserError,
)
from harness.interrupts import interruptible
from harness.registries import SIM
from harness.report.document import RunReport
from harness.report.live import Plain, Screen, display
from harness.scenario import Scenario, load
from harness.summary import print_campaign, print_report

SEED_MAX = 2**31
_WORST_FIRST = (EXIT_INTERRUPTED, EXIT_VIOLATION, EXIT_HARNESS, EXIT_USAGE, EXIT_UNKNOWN)


def run_all(
    paths: Sequence[Path],
    *,
    runtime: str,
    seed: int | None,
    repeat: int,
    store_dir: Path,
    as_json: bool,
    quiet: bool,
    argv: Sequence[str],
) -> int:
    """Runs every scenario ``repeat`` times and prints reports; returns the exit code."""
    prepared = _prepare(paths, seed, repeat)
    progress = display(quiet=quiet)

    reports: list[RunReport] = []
    failed: list[tuple[str, LockhavocError]] = []
    with interruptible():
        for path, scenario, plan in prepared:
            chosen = _choose_runtime(scenario, runtime)
            try:
                report = _run_one(path, scenario, plan, chosen, store_dir, argv, progress)
            except LockhavocError as error:
                click.echo(f"lockhavoc: {scenario.name}: {error}", err=True)
                failed.append((scenario.name, error))
                continue
            reports.append(report)
            if not as_json:
                print_report(report, brief=len(prepared) > 1)
            if report.exit_code == EXIT_INTERRUPTED:
                break
    print_campaign(reports, [(name, str(error)) for name, error in failed], as_json=as_json)
    codes = [r.exit_code for r in reports] + [error.exit_code for _, error in failed]
    return next((code for code in _WORST_FIRST if code in codes), EXIT_AS_CLAIMED)


def _run_one(
    path: Path,
    scenario: Scenario,
    plan: plans.Plan,
    runtime: str,
    store_dir: Path,
    argv: Sequence[str],
    progress: Plain | Screen,
) -> RunReport:
    from harness.run import execute, publish

    try:
        report = execute(
            scenario,
            plan,
            source=path.read_text(encoding="utf-8"),
            runtime=runtime,
            store_dir=store_dir,
            argv=["lockhavoc", *argv],
            replay=_replay(path, plan, runtime),
            progress=progress,
        )
    finally:
        progress.rest()
    publish(report, store_dir)
    return report


def _prepare(
    paths: Sequence[Path], seed: int | None, repeat: int
) -> list[tuple[Path, Scenario, plans.Plan]]:
    """Loads all of them before anything starts, and lists the problems of all."""
    problems: list[str] = []
    prepared = []
    for path in paths:
        try:
            if path.suffix == ".json":
                prepared.append((path, *plans.load(path)))
                continue
            scenario = load(path)
        except UserError as error:
            problems.append(str(error))
            continue
        first = seed if seed is not None else scenario.run.seed
        if first is None:
            first = secrets.randbelow(SEED_MAX)
        for shift in range(repeat):
            prepared.append((path, scenario, plans.draw(scenario, first + shift)))
    if problems:
        raise UserError("\n".join(problems))
    return prepared


def _choose_runtime(scenario: Scenario, runtime: str) -> str:
    if scenario.backend.name == SIM or runtime == SIM:
        return SIM
    from compose.doctor import choose

    return choose(runtime, scenario.backend.name)


def _replay(path: Path, plan: plans.Plan, runtime: str) -> list[str]:
    words = ["lockhavoc", "run", shlex.quote(str(path))]
    if path.suffix != ".json":
        words += ["--seed", str(plan.seed)]
    return words if runtime == SIM else [*words, "--runtime", runtime]
