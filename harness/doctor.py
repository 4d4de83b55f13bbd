"""``lockhavoc doctor``: a table of what can be done here and why not."""

from __future__ import annotations

import json

import click

from compose import doctor
from harness.core.errors import EXIT_AS_CLAIMED, RefusedError


def show(*, as_json: bool) -> int:
    """Prints the table; always exit 0, since a missing part is an answer and no failure."""
    rows = doctor.rows()
    try:
        auto = doctor.choose("auto", "redis-single")
    except RefusedError as error:
        auto = f"none ({error})"
    if as_json:
        found = [{"what": r.what, "ok": r.ok, "says": r.says, "fix": r.fix} for r in rows]
        click.echo(json.dumps({"rows": found, "auto": auto}, indent=2))
        return EXIT_AS_CLAIMED
    width = max(len(row.what) for row in rows)
    for row in rows:
        click.echo(f"{'yes' if row.ok else 'no ':3}  {row.what:{width}}  {row.says}")
        if not row.ok and row.fix:
            click.echo(f"{'':5}{'':{width}}  fix: {row.fix}")
    click.echo(f"\n--runtime auto would take: {auto}")
    return EXIT_AS_CLAIMED
