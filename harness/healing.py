"""``lockhavoc heal``: undo what dead runs left behind, from their ledgers alone."""

from __future__ import annotations

from pathlib import Path

import click

from harness import ledger
from harness.core.errors import EXIT_AS_CLAIMED, EXIT_HARNESS, UserError


def heal_runs(run_dir: Path | None, store: Path) -> int:
    """Heals one run, or all runs of a store; exit code 0, or 255 if something could not be."""
    runs = [run_dir] if run_dir else sorted({p.parent.resolve() for p in _ledgers(store)})
    if run_dir is not None and not (run_dir / ledger.FILE).exists():
        raise UserError(f"{run_dir}: no {ledger.FILE} there; name the directory of a run")
    failures: list[str] = []
    healed = 0
    for run in runs:
        if ledger.is_alive(run):
            click.echo(f"{run}: its harness still runs; left alone")
            continue
        if not ledger.open_promises(run):
            continue
        healed += 1
        done, failed = ledger.heal(run)
        click.echo(f"{run}:")
        for line in done:
            click.echo(f"  {line}")
        for line in failed:
            click.echo(f"  FAILED {line}", err=True)
        failures += failed
        if not failed:
            click.echo(f"  healed; judge what was recorded: lockhavoc check {run}")
    if not healed:
        click.echo("nothing to heal")
    return EXIT_HARNESS if failures else EXIT_AS_CLAIMED


def _ledgers(store: Path) -> list[Path]:
    return list(store.glob(f"*/*/{ledger.FILE}"))
