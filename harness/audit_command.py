"""``lockhavoc audit PATH...``: who may touch the protected thing, and what proves it.

    lockhavoc audit app/ redis.conf
    lockhavoc audit app/ --json > audit.json

Nothing is started and no server is needed: files go in, a record comes out.  Exit codes: 0 all five
dimensions ok, 1 findings, 2 nothing found but not all is known, 254 wrong usage.

Traps: the only date that counts is ``--as-of``, for exceptions; without exceptions it changes
nothing, so the same files give the same bytes on every day.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from checkers.audit import Record, as_json, as_text, audit
from checkers.audit.sarif import as_sarif
from checkers.audit.verdict import READY
from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, EXIT_VIOLATION

_WRITERS: dict[str, Callable[[Record], str]] = {
    "json": as_json,
    "sarif": as_sarif,
    "text": as_text,
}


def exit_code(record: Record) -> int:
    """0, 1 or 2, as the house rules say: a finding wins over everything that is unknown."""
    if record.findings:
        return EXIT_VIOLATION
    return EXIT_AS_CLAIMED if record.verdict == READY else EXIT_UNKNOWN


@click.command("audit")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(sorted(_WRITERS)),
    default="text",
    show_default=True,
    help="How the record is written.",
)
@click.option("--json", "as_json_too", is_flag=True, help="Short for --format json.")
@click.option(
    "--as-of",
    type=click.DateTime(["%Y-%m-%d"]),
    help="The day on which exceptions must still hold; default: today.",
)
def audit_command(
    paths: Sequence[Path], form: str, as_json_too: bool, as_of: datetime.datetime | None
) -> int:
    """Judges code and configuration around a lock: PATHS are files and folders.

    Five dimensions: identity, lease, fencing, release and retry, recovery.  Each is ok only with
    evidence that was seen; what is not seen stays unknown.

    \b
    Examples:
      lockhavoc audit app/ redis.conf
      lockhavoc audit worker.py settings.py --json
    """
    day = as_of.date() if as_of else datetime.datetime.now(tz=datetime.UTC).date()
    record = audit(paths, as_of=day)
    click.echo(_WRITERS["json" if as_json_too else form](record), nl=False)
    return exit_code(record)
