"""``lockhavoc audit generate PATHS --into DIR``: what proves the fixes of an audit.

    lockhavoc audit generate app/ redis.conf --into proofs
    pytest proofs/test_ownership.py

Writes a scenario per rule, a pytest file that drives the functions that were found, and queries.

Traps: a file that is there and differs is not written over unless ``--force`` is given: arguments
that somebody wrote into it would be lost.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import click

from checkers.audit.generate import generate
from checkers.audit.read import read
from checkers.audit.verdict import judge
from harness import store
from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, UserError


@click.command("generate")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--into", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder."
)
@click.option("--library", default="", help="Library that the scenarios drive; default: by code.")
@click.option("--backend", default="", help="Backend of the scenarios; default: the library's.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def generate_command(
    paths: Sequence[Path], into: Path, library: str, backend: str, force: bool
) -> int:
    """Writes what proves the fixes for findings in PATHS: scenarios, a pytest file, queries.

    Each fails now and passes when the fix is right. Exit code 0, or 2 if there is nothing to prove.

    \b
    Examples:
      lockhavoc audit generate app/ --into proofs
      lockhavoc audit generate app/ --into proofs --library recipe-redis --backend sim
    """
    inputs = read(paths)
    record = judge(inputs, as_of=datetime.datetime.now(tz=datetime.UTC).date())
    made = generate(record, inputs, into, library=library, backend=backend)
    if not made.files:
        click.echo("no finding, so nothing to prove")
        return EXIT_UNKNOWN
    there = [
        str(into / name)
        for name, text in made.files.items()
        if (into / name).exists() and (into / name).read_text() != text
    ]
    if there and not force:
        raise UserError("files are there and differ; give --force to write over them", there)
    for name, text in sorted(made.files.items()):
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        store.write(into / name, text)
        click.echo(f"{into / name}")
    for words in made.skipped:
        click.echo(f"no test: {words}", err=True)
    return EXIT_AS_CLAIMED
