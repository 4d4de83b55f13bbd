"""``lockhavoc verify`` and ``lockhavoc compare``: the command line of verifications."""

from __future__ import annotations

import secrets
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from harness import store
from harness.library_options import Chosen, library_options
from harness.run_options import runtime_option, store_option
from harness.verify import page, toml
from harness.verify.cells import blank, scenario_data
from harness.verify.compare import Comparison, compare
from harness.verify.document import Document, encode, load
from harness.verify.matrix import Planned, planned, verify
from harness.verify.options import jobs_option

SEED_MAX = 2**31
FILE, PAGE, JUNIT = "verify.json", "verify.md", "junit.xml"


@click.command("verify")
@click.argument("library")
@library_options
@click.option("--only", multiple=True, metavar="SITUATION", help="Only this one; may be repeated.")
@click.option("--backend", "backends", multiple=True, help="Only this one; may be repeated.")
@runtime_option
@click.option("--quick", is_flag=True, help="Only the situations that tell most.")
@click.option("--seed", type=click.IntRange(0), help="Repeats the choices of an earlier run.")
@jobs_option
@click.option(
    "--against",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The verify.json of another version: cells that got worse are a regression, exit 1.",
)
@click.option("--strict", is_flag=True, help="With --against: no longer better counts as worse.")
@click.option("--list", "list_only", is_flag=True, help="Lists the cells and claims, runs nothing.")
@click.option("--print", "print_only", is_flag=True, help="Prints the scenarios, runs nothing.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Writes a page.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Writes JUnit XML.")
@store_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
def verify_command(
    choice: Chosen,
    library: str,
    only: Sequence[str],
    backends: Sequence[str],
    runtime: str,
    quick: bool,
    seed: int | None,
    jobs: int,
    against: Path | None,
    strict: bool,
    list_only: bool,
    print_only: bool,
    markdown: Path | None,
    junit: Path | None,
    store_dir: Path,
    as_json: bool,
    quiet: bool,
) -> int:
    """Puts LIBRARY through every situation that fits, and says what it promises, keeps and breaks.

    Exit code 1: a promise was broken, or with --against a cell got worse.  2: something could not
    be judged.  Ctrl-C keeps what is done.  LIBRARY says what is promised; --with, --wheel, --python
    and --adapter say which version of it, or whose code, is held to that.

    \b
    Examples:
      lockhavoc verify redis-py
      lockhavoc verify redis-py --quick --runtime process
      lockhavoc verify redis-py --list
      lockhavoc verify redis-py --only holder-pause --backend redis-single --seed 7
      lockhavoc verify redis-py --only holder-pause --print > holder-pause.toml
      lockhavoc verify redis-py --with redis-py==5.0.0
      lockhavoc verify redis-py --adapter my_fork.py --against store/verify/latest/verify.json
    """
    before = None if against is None else load(against)
    cells = planned(library, backends=backends, runtime=runtime, only=only, quick=quick)
    if list_only or print_only:
        if list_only:
            click.echo(
                page.listing([blank(plan.situation, plan.traits) for plan in cells]), nl=False
            )
        else:
            _print(cells, choice)
        return 0
    document = _run(
        library,
        cells,
        choice,
        seed=secrets.randbelow(SEED_MAX) if seed is None else seed,
        jobs=jobs,
        store_dir=store_dir,
        say=_silent if quiet else _say,
    )
    if markdown is not None:
        store.write(markdown, page.markdown(document))
    if junit is not None:
        store.write(junit, page.junit(document))
    if before is None:
        click.echo(encode(document) if as_json else page.text(document), nl=False)
        return document.exit_code
    found = compare(before, document, strict=strict)
    _show(found, as_json=as_json)
    return found.exit_code


def _run(
    library: str,
    cells: Sequence[Planned],
    choice: Chosen,
    *,
    seed: int,
    jobs: int,
    store_dir: Path,
    say: Callable[[str], None],
) -> Document:
    """Runs the cells; the folder has all files, the data also while they run."""
    folder = _folder(store_dir, library)
    say(f"{len(cells)} cells for {library}, seed {seed}, kept in {folder}")
    document = verify(
        library,
        cells,
        seed=seed,
        store_dir=store_dir,
        argv=["lockhavoc", *sys.argv[1:]],
        command=shlex.join(["lockhavoc", *sys.argv[1:]]),
        progress=say,
        jobs=jobs,
        choice=choice,
        keep=lambda found: store.write(folder / FILE, encode(found)),
    )
    store.write(folder / PAGE, page.markdown(document))
    store.write(folder / JUNIT, page.junit(document))
    store.finished(store_dir / "verify", folder)
    return document


@click.command("compare")
@click.argument("before", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("after", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--strict", is_flag=True, help="No longer better than claimed counts as worse.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def compare_command(before: Path, after: Path, strict: bool, as_json: bool) -> int:
    """Compares two verifications (verify.json): cells that got worse are regressions, exit 1.

    \b
    Example:
      lockhavoc compare released/verify.json mine/verify.json
    """
    found = compare(load(before), load(after), strict=strict)
    _show(found, as_json=as_json)
    return found.exit_code


def _print(cells: Sequence[Planned], choice: Chosen) -> None:
    for number, plan in enumerate(cells):
        data = scenario_data(plan.situation, plan.traits, choice)
        assert data is not None
        head = "" if number == 0 else "\n# " + "-" * 78 + "\n\n"
        click.echo(head + toml.dump(data), nl=False)


def _folder(store_dir: Path, library: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
    folder = store_dir / "verify" / library / stamp
    folder.mkdir(parents=True)
    return folder


def _show(found: Comparison, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        click.echo(page.comparison_text(found), nl=False)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _silent(_: str) -> None:
    return None


__all__ = ["Document", "compare_command", "verify_command"]
