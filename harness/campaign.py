"""Several runs, one after the other, and one exit code for all of them.

Order of badness: violation (or a canary that passed) wins over a harness failure, that over
unknown.  The counts are always printed, so nothing hides behind the worst.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

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
from harness.library_choice import apply
from harness.library_options import NOTHING, Chosen
from harness.registries import SIM
from harness.report import github, markdown
from harness.report.document import RunReport
from harness.report.junit import junit
from harness.report.live import Plain, Screen, display
from harness.scenario import Scenario, load
from harness.summary import print_campaign, print_report

SEED_MAX = 2**31
_WORST_FIRST = (EXIT_INTERRUPTED, EXIT_VIOLATION, EXIT_HARNESS, EXIT_USAGE, EXIT_UNKNOWN)


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """Files about all runs of a campaign, besides those that each run leaves in the store."""

    summary: Path | None = None  # Markdown, appended to
    junit: Path | None = None


NO_OUTPUTS = Outputs()


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
    outputs: Outputs = NO_OUTPUTS,
    choice: Chosen = NOTHING,
) -> int:
    """Runs every scenario ``repeat`` times and prints reports; returns the exit code."""
    prepared = _prepare(paths, seed, repeat, choice)
    progress = display(quiet=quiet)

    finished: list[tuple[Path, RunReport]] = []
    failed: list[tuple[Path, str, LockhavocError]] = []
    with interruptible():
        for path, scenario, plan in prepared:
            chosen = _choose_runtime(scenario, runtime)
            try:
                report = _run_one(path, scenario, plan, chosen, store_dir, argv, progress, choice)
            except LockhavocError as error:
                click.echo(f"lockhavoc: {scenario.name}: {error}", err=True)
                failed.append((path, scenario.name, error))
                continue
            finished.append((path, report))
            if not as_json:
                print_report(report, brief=len(prepared) > 1)
            if report.exit_code == EXIT_INTERRUPTED:
                break
    _tell_ci([*finished, *map(_not_run, failed)], outputs)
    reports = [report for _, report in finished]
    print_campaign(reports, [(name, str(error)) for _, name, error in failed], as_json=as_json)
    codes = [r.exit_code for r in reports] + [error.exit_code for _, _, error in failed]
    return next((code for code in _WORST_FIRST if code in codes), EXIT_AS_CLAIMED)


def _not_run(failed: tuple[Path, str, LockhavocError]) -> tuple[Path, RunReport]:
    """A run that could not be made, for CI: it must not look as if there were none."""
    path, name, error = failed
    says = f"did not run: {error}"
    return path, RunReport(
        name=name, verdict="harness-failure", says=says, exit_code=error.exit_code
    )


def _tell_ci(finished: Sequence[tuple[Path, RunReport]], outputs: Outputs) -> None:
    """Summary and JUnit where asked for, annotations where GitHub runs this."""
    reports = [report for _, report in finished]
    try:
        if outputs.summary is not None:
            with outputs.summary.open("a", encoding="utf-8") as file:
                file.write(markdown.summary(reports))
        if outputs.junit is not None:
            outputs.junit.write_bytes(junit(reports))
    except OSError as error:
        # The runs are done and stored; say it, and let their verdicts decide the exit code.
        click.echo(f"lockhavoc: {error.filename}: cannot be written: {error.strerror}", err=True)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for command in github.commands(finished):
            click.echo(command, err=True)


def _run_one(
    path: Path,
    scenario: Scenario,
    plan: plans.Plan,
    runtime: str,
    store_dir: Path,
    argv: Sequence[str],
    progress: Plain | Screen,
    choice: Chosen,
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
            replay=_replay(path, plan, runtime, choice),
            progress=progress,
        )
    finally:
        progress.rest()
    publish(report, store_dir)
    return report


def _prepare(
    paths: Sequence[Path], seed: int | None, repeat: int, choice: Chosen
) -> list[tuple[Path, Scenario, plans.Plan]]:
    """Loads all of them before anything starts, and lists the problems of all."""
    problems: list[str] = []
    prepared = []
    for path in paths:
        try:
            if path.suffix == ".json":
                scenario, plan = plans.load(path)
                scenario = apply(scenario, choice)
                prepared.append((path, scenario, plans.plan_for(scenario, plan)))
                continue
            scenario = apply(load(path), choice)
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


def _replay(path: Path, plan: plans.Plan, runtime: str, choice: Chosen) -> list[str]:
    words = ["lockhavoc", "run", shlex.quote(str(path)), *choice.words()]
    if path.suffix != ".json":
        words += ["--seed", str(plan.seed)]
    return words if runtime == SIM else [*words, "--runtime", runtime]
