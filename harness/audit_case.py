"""``lockhavoc audit open | add | attach | except | assign | close | show | verify``: the case file.

    lockhavoc audit open billing.case --intent "one biller per order"
    lockhavoc audit add billing.case app/ redis.conf
    lockhavoc audit close billing.case

Every command appends one entry; nothing is ever rewritten.  ``show`` and ``verify`` only read.

Traps: a case carries times, unlike an audit: who looked when is part of what it keeps.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from checkers.audit import audit
from checkers.audit.case import Case
from checkers.audit.closing import fold, missing, summary
from checkers.audit.model import Dimension
from checkers.audit.verdict import exit_code
from harness.audit_live import attach_command
from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, EXIT_VIOLATION, UserError

_CASE = click.argument("case", type=click.Path(dir_okay=False, path_type=Path))
_DIMENSION = click.argument("dimension", type=click.Choice([str(d) for d in Dimension]))
_CORRECTS = click.option(
    "--corrects", type=click.IntRange(1), help="The entry that this one supersedes."
)


def _now() -> datetime.datetime:
    return datetime.datetime.now(tz=datetime.UTC)


def _append(path: Path, kind: str, data: dict[str, Any], corrects: int | None = None) -> int:
    case = Case(path)
    if kind != "open":
        case.read()  # an entry needs a case that is whole
    at = _now().isoformat(timespec="seconds")
    entry = case.append(kind, data, at, corrects=corrects)
    click.echo(f"{path}: entry {entry.n} ({kind})")
    return EXIT_AS_CLAIMED


@click.command("open")
@_CASE
@click.option("--intent", required=True, help="What the lock is to make sure.")
@click.option("--resource", default="", help="What it protects.")
def open_command(case: Path, intent: str, resource: str) -> int:
    """Opens a new CASE, a file that must not exist yet."""
    if case.exists():
        raise UserError(f"{case}: exists; a case is opened once, add to it or choose another name")
    return _append(case, "open", {"intent": intent, "resource": resource})


@click.command("add")
@_CASE
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@_CORRECTS
def add_command(case: Path, paths: Sequence[Path], corrects: int | None) -> int:
    """Audits PATHS and keeps what was found in the CASE; the latest audit counts."""
    record = audit(paths, as_of=_now().date())
    _append(case, "add", summary(record), corrects)
    return exit_code(record)


@click.command("except")
@_CASE
@_DIMENSION
@click.option("--reason", required=True)
@click.option("--owner", required=True, help="Who answers for it.")
@click.option(
    "--until", required=True, type=click.DateTime(["%Y-%m-%d"]), help="The last day it holds."
)
@_CORRECTS
def except_command(
    case: Path,
    dimension: str,
    reason: str,
    owner: str,
    until: datetime.datetime,
    corrects: int | None,
) -> int:
    """Bounds what is not proven in a DIMENSION of the CASE: why, who, until when."""
    if not reason.strip() or not owner.strip():
        raise UserError("an exception needs a reason and an owner", ["one of them is empty"])
    if until.date() < _now().date():
        raise UserError(f"--until {until.date()} is over; an exception ends on a day to come")
    data = {
        "dimension": dimension,
        "reason": reason,
        "owner": owner,
        "until": until.date().isoformat(),
    }
    return _append(case, "except", data, corrects)


@click.command("assign")
@_CASE
@_DIMENSION
@click.argument("owner")
@_CORRECTS
def assign_command(case: Path, dimension: str, owner: str, corrects: int | None) -> int:
    """Names the OWNER of a DIMENSION of the CASE."""
    if not owner.strip():
        raise UserError("the owner is empty; name a person or a team")
    return _append(case, "assign", {"dimension": dimension, "owner": owner}, corrects)


@click.command("close")
@_CASE
def close_command(case: Path) -> int:
    """Closes the CASE, or lists what is missing: evidence, exceptions, owners, validations."""
    state = fold(Case(case).read())
    gaps = missing(state, as_of=_now().date())
    if gaps:
        click.echo(f"{case}: cannot be closed:", err=True)
        for gap in gaps:
            click.echo(f"  - {gap}", err=True)
        return EXIT_VIOLATION
    data = {
        "audit": state.audit_entry,
        "dimensions": {str(d): str(state.status(d)) for d in Dimension},
        "proofs": {str(d): state.proofs(d) for d in Dimension},
        "attached": sorted(state.attached),
        "exceptions": state.exceptions,
        "owners": state.owners,
        "condition": "each dimension ok with evidence or under an exception; no finding is open",
    }
    return _append(case, "close", data)


@click.command("show")
@_CASE
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def show_command(case: Path, as_json: bool) -> int:
    """Shows the entries of the CASE and what is missing to close it."""
    entries = Case(case).read()
    state = fold(entries)
    gaps = missing(state, as_of=_now().date())
    closed = bool(state.closed_by) and not gaps
    if as_json:
        data = {"closed": closed, "missing": gaps, "entries": msgspec.to_builtins(entries)}
        click.echo(json.dumps(data, indent=2))
    else:
        words = f"closed by entry {state.closed_by}" if closed else "open"
        click.echo(f"{case}: {words}; {state.intent}")
        for entry in entries:
            note = f" (corrects {entry.corrects})" if entry.corrects else ""
            click.echo(f"  {entry.n:>3} {entry.at} {entry.kind}{note} {_short(entry.data)}")
        for gap in gaps:
            click.echo(f"  missing: {gap}")
    return EXIT_AS_CLAIMED if closed else EXIT_UNKNOWN


def _short(data: dict[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in data.items() if isinstance(v, str) and v)


@click.command("verify")
@_CASE
def verify_command(case: Path) -> int:
    """Checks that no line of the CASE was edited, moved, dropped or cut."""
    found = Case(case)
    entries = found.read()
    click.echo(f"{case}: {len(entries)} entries, whole; last line {found.digest()}")
    return EXIT_AS_CLAIMED


COMMANDS = (
    open_command,
    add_command,
    attach_command(_append),
    except_command,
    assign_command,
    close_command,
    show_command,
    verify_command,
)
