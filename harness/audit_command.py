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
from checkers.audit.baseline import NONE, Baseline
from checkers.audit.baseline import load as load_baseline
from checkers.audit.baseline import of as baseline_of
from checkers.audit.logs import Mapping, read_mapping
from checkers.audit.markdown import as_markdown
from checkers.audit.read import DEFAULT
from checkers.audit.sarif import as_sarif
from checkers.audit.verdict import exit_code
from harness.audit_case import COMMANDS
from harness.audit_generate import generate_command
from harness.audit_live import history_command, is_run, run_seen
from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN
from harness.report.audit_page import audit_page
from harness.store import write

_WRITERS: dict[str, Callable[[Record], str]] = {
    "html": audit_page,
    "json": as_json,
    "md": as_markdown,
    "sarif": as_sarif,
    "text": as_text,
}


class PathsOrCase(click.Group):
    """Takes what is no command for paths, so that ``audit app/`` means ``audit files app/``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["files", *args]
        return super().parse_args(ctx, args)


@click.group("audit", cls=PathsOrCase)
def audit_command() -> None:
    """Judges code and configuration around a lock, and keeps cases about it.

    PATHS alone mean the command files; a file that is called like a command is written ./open.

    \b
    Examples:
      lockhavoc audit app/ redis.conf
      lockhavoc audit worker.py settings.py --json
      lockhavoc audit open billing.case --intent "one biller per order"
      lockhavoc audit add billing.case app/
    """


for _command in (*COMMANDS, history_command(_WRITERS), generate_command):
    audit_command.add_command(_command)


def audited(
    paths: Sequence[Path], day: datetime.date, mapping: Mapping = DEFAULT, known: Baseline = NONE
) -> Record:
    """The record of files, folders and stored runs."""
    runs = [path for path in paths if is_run(path)]
    seen = [run_seen(path)[0] for path in runs]
    files = [path for path in paths if path not in runs]
    return audit(files, as_of=day, seen=seen, mapping=mapping, baseline=known)


@audit_command.command("files")
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
@click.option(
    "--log-map",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file that says which words and fields of your logs mean what.",
)
@click.option(
    "--baseline",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of known findings: they are listed and do not fail.",
)
@click.option(
    "--write-baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what is found now into a baseline, and end with 0.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["unknown", "findings"]),
    default="unknown",
    show_default=True,
    help="With 'findings' what is only unknown ends with 0.",
)
def files_command(
    paths: Sequence[Path],
    form: str,
    as_json_too: bool,
    as_of: datetime.datetime | None,
    log_map: Path | None,
    baseline: Path | None,
    write_baseline: Path | None,
    fail_on: str,
) -> int:
    """Judges PATHS, which are files and folders.

    Five dimensions: identity, lease, fencing, release and retry, recovery.  Each is ok only with
    evidence that was seen; what is not seen stays unknown.

    \b
    Examples:
      lockhavoc audit app/ redis.conf
      lockhavoc audit worker.py settings.py --json
      lockhavoc audit logs/ --log-map log-map.toml
      lockhavoc audit app/ --write-baseline audit-baseline.json
      lockhavoc audit app/ --baseline audit-baseline.json --fail-on findings
      lockhavoc audit app/ --format html > audit.html
    """
    day = as_of.date() if as_of else datetime.datetime.now(tz=datetime.UTC).date()
    mapping = read_mapping(log_map) if log_map else DEFAULT
    known = load_baseline(baseline) if baseline else NONE
    record = audited(paths, day, mapping, known)
    if write_baseline:
        found = [*record.findings, *record.known]
        write(write_baseline, baseline_of(found))
        click.echo(f"{write_baseline}: {len(found)} findings are known now", err=True)
        return EXIT_AS_CLAIMED
    click.echo(_WRITERS["json" if as_json_too else form](record), nl=False)
    code = exit_code(record)
    return EXIT_AS_CLAIMED if code == EXIT_UNKNOWN and fail_on == "findings" else code
