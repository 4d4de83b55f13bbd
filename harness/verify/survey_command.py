"""``lockhavoc survey``: all libraries, the key situations, one page."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from harness import store
from harness.core.errors import (
    EXIT_INTERRUPTED,
    EXIT_UNKNOWN,
    EXIT_VIOLATION,
    LockhavocError,
    UserError,
)
from harness.registries import LIBRARIES
from harness.run_options import store_option
from harness.verify.document import Document
from harness.verify.matrix import planned, verify
from harness.verify.options import jobs_option
from harness.verify.survey import (
    Survey,
    add,
    first_backend,
    known,
    load_survey,
    page_of,
    surveyed_libraries,
)


@click.command("survey")
@click.argument("libraries", nargs=-1)
@click.option(
    "--runtime",
    type=click.Choice(["auto", "docker", "process"]),
    default="auto",
    show_default=True,
    help="Where the servers run, as for `lockhavoc run`.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@jobs_option
@click.option("--again", is_flag=True, help="Runs cells that are known already, too.")
@click.option("--minutes", type=click.IntRange(1), help="Begins no other library after this time.")
@click.option("--page-only", is_flag=True, help="Runs nothing; writes the page from the data.")
@click.option(
    "--data",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("docs/survey.json"),
    show_default=True,
    help="What was seen so far; added to after each cell.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("docs/survey.md"),
    show_default=True,
)
@store_option
@click.option("--json", "as_json", is_flag=True, help="The data on stdout, as one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
def survey_command(
    libraries: Sequence[str],
    runtime: str,
    seed: int,
    jobs: int,
    again: bool,
    minutes: int | None,
    page_only: bool,
    data: Path,
    page: Path,
    store_dir: Path,
    as_json: bool,
    quiet: bool,
) -> int:
    """What LIBRARIES (all, but the deliberately broken ones) do when their holder pauses, their
    server restarts and their link is cut; writes a page with a row for each.

    A cell that is known is not run again, so this can be stopped (Ctrl-C) and taken up.

    \b
    Examples:
      lockhavoc survey
      lockhavoc survey redis-py kazoo --again
      lockhavoc survey --page-only
    """
    for name in libraries:
        LIBRARIES.where(name)
        if not first_backend(name):
            raise UserError(f"{name!r} runs on no real backend, so there is nothing to survey")
    survey = load_survey(data)
    say = _silent if quiet else _say
    began, codes = time.monotonic(), set()
    for name in () if page_only else (libraries or surveyed_libraries()):
        if minutes is not None and time.monotonic() - began > minutes * 60:
            say(f"{minutes} minutes are over; the rest is for the next time")
            break
        try:
            made = _one(survey, name, runtime, seed, jobs, again, data, store_dir, say)
        except LockhavocError as error:
            say(f"{name}: {error}")
            codes.add(EXIT_UNKNOWN)
            continue
        if made is None:
            continue
        codes.add(made.exit_code)
        if made.interrupted:
            break
    store.write(page, page_of(survey))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(survey), indent=2).decode())
    else:
        cells = sum(len(document.cells) for document in survey.documents.values())
        click.echo(f"{len(survey.documents)} libraries, {cells} cells: {page}")
    order = (EXIT_VIOLATION, EXIT_INTERRUPTED, EXIT_UNKNOWN)
    return next((code for code in order if code in codes), 0)


def _one(
    survey: Survey,
    library: str,
    runtime: str,
    seed: int,
    jobs: int,
    again: bool,
    data: Path,
    store_dir: Path,
    say: Callable[[str], None],
) -> Document | None:
    """Runs what is not known of a library, keeping the data after each cell."""
    backend = first_backend(library)
    cells = planned(library, backends=[backend], runtime=runtime, only=[], quick=False, key=True)
    done = set() if again else known(survey, library)
    cells = [p for p in cells if (p.traits.backend, p.situation.name) not in done]
    if not cells:
        return None
    say(f"{library}: {len(cells)} cells")
    survey.command = shlex.join(["lockhavoc", "survey", "--runtime", runtime, "--seed", str(seed)])

    def keep(made: Document) -> None:
        copy = msgspec.convert(msgspec.to_builtins(made), Document)
        for cell in copy.cells:
            cell.run_dir = "/".join(Path(cell.run_dir).parts[-2:])  # the data are to be shared
        with _alone(data):
            there = load_survey(data)
            there.command = survey.command
            add(there, copy)
            store.write_json(data, there)
        survey.documents = there.documents

    return verify(
        library,
        cells,
        seed=seed,
        store_dir=store_dir,
        argv=["lockhavoc", *sys.argv[1:]],
        command=survey.command,
        progress=say,
        jobs=jobs,
        keep=keep,
    )


@contextlib.contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Two surveys may add to one file; a lock on its folder leaves no file behind."""
    folder = os.open(data.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _silent(_: str) -> None:
    return None
