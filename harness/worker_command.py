"""``lockhavoc worker``: does a worker, in whatever language, speak the protocol?

stdout carries the findings, stderr the progress.  Exit codes: 0 all points passed, 1 one failed,
254 the command line is wrong, 255 the server or the proxy failed.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.core.errors import EXIT_AS_CLAIMED, EXIT_VIOLATION, UserError

if TYPE_CHECKING:
    from harness.conformance.examine import Finding
    from harness.core.protocols import Cluster

NO_SERVER = "none"
LINES_SHOWN = 6  # of what was said at a failed point; what is wrong is nearly always in the last
WORDS = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip"}


@click.group("worker")
def worker() -> None:
    """Examines workers: the programs that drive a lock library for the harness.

    \b
    Example:
      lockhavoc worker check -- ./my-worker --fast
    """


@worker.command("check", context_settings={"ignore_unknown_options": False})
@click.option("--backend", help="The servers it locks on, or none; default redis-single.")
@click.option(
    "--runtime",
    type=click.Choice(["process", "docker"]),
    default="process",
    show_default=True,
    help="Where the servers run.",
)
@click.option("--option", "options", multiple=True, metavar="K=V", help="For open; V as in JSON.")
@click.option("--library", "library_name", help="A registered library in place of CMD.")
@click.option(
    "--ttl-ms",
    type=click.IntRange(100, 60_000),
    default=3_000,
    show_default=True,
    help="Lease of the points that wait for its end.",
)
@click.option("--only", multiple=True, metavar="POINT", help="Only these points, after hello.")
@click.option("-v", "--verbose", is_flag=True, help="Requests and answers of every point.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.argument("command", nargs=-1, metavar="[-- CMD...]", type=click.UNPROCESSED)
def check_command(
    backend: str | None,
    runtime: str,
    options: tuple[str, ...],
    library_name: str | None,
    ttl_ms: int,
    only: tuple[str, ...],
    verbose: bool,
    quiet: bool,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Starts CMD as a worker on a real server and asks it every point of the protocol.

    Two workers are started from CMD, each with its own way to the servers through a proxy, and a
    protected resource.  One line per point; of a failed one also the requests and answers.  The
    protocol is in docs/reference/worker-protocol.md.

    \b
    Examples:
      lockhavoc worker check -- ./my-worker
      lockhavoc worker check --backend etcd3 --option timeout_ms=2000 -- java -jar worker.jar
      lockhavoc worker check --backend none --option 'dir="/tmp/locks"' -- perl worker.pl
      lockhavoc worker check --library redis-py --json
    """
    tell = (lambda text: None) if quiet else (lambda text: click.echo(text, err=True))
    argv, place = _what(command, library_name, backend, tell)
    settled = dict(_option(text) for text in options)
    asked = Asked(argv, place, runtime, settled, ttl_ms, _points(only))
    found: list[Finding] = []
    for finding in _examine(asked, tell):
        found.append(finding)
        if not as_json:
            _show(finding, verbose)
    counts = {word: sum(1 for one in found if one.outcome == word) for word in WORDS}
    if as_json:
        click.echo(json.dumps(_document(asked, counts, found)))
    else:
        told = ", ".join(f"{count} {word}" for word, count in counts.items())
        click.echo(f"\n{told}: {' '.join(argv)}")
    return EXIT_VIOLATION if counts["failed"] else EXIT_AS_CLAIMED


@dataclass(frozen=True)
class Asked:
    """What is examined, and where."""

    argv: Sequence[str]
    backend: str
    runtime: str
    options: dict[str, Any]
    ttl_ms: int
    only: Sequence[str]


def _points(only: Sequence[str]) -> Sequence[str]:
    from harness.conformance.examine import names

    unknown = [name for name in only if name not in names()]
    if unknown:
        raise UserError(f"--only is {unknown[0]!r}; it must be one of {', '.join(names())}")
    return only


def _what(
    command: Sequence[str], library_name: str | None, backend: str | None, tell: Any
) -> tuple[list[str], str]:
    """argv of the worker and the name of its backend."""
    if (library_name is None) == (not command):
        raise UserError(
            "worker check needs the worker's command after --, or --library NAME, not both: "
            "lockhavoc worker check -- ./my-worker"
        )
    if library_name is None:
        return list(command), backend or "redis-single"
    from clients.environments import ensure
    from harness.registries import LIBRARIES

    library = LIBRARIES.load(library_name)
    return library.command(ensure(library, progress=tell)), backend or library.backends[0]


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UserError(f"--option is {text!r}; it must be of the form name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _examine(asked: Asked, tell: Any) -> Iterator[Finding]:
    from harness.conformance.bench import Bench
    from harness.conformance.examine import examine
    from harness.interrupts import interruptible

    with (
        interruptible(),
        tempfile.TemporaryDirectory(prefix="lockhavoc-check-") as folder,
        _servers(asked, Path(folder), tell) as cluster,
        Bench(
            asked.argv,
            cluster=cluster,
            options=asked.options,
            directory=Path(folder),
            short_ms=asked.ttl_ms,
        ) as bench,
    ):
        yield from examine(bench, asked.only)


@contextlib.contextmanager
def _servers(asked: Asked, folder: Path, tell: Any) -> Iterator[Cluster | None]:
    if asked.backend == NO_SERVER:
        yield None
        return
    from harness.running_backend import running_backend

    with running_backend(asked.backend, asked.runtime, folder, clients=2, tell=tell) as cluster:
        yield cluster


def _show(finding: Finding, verbose: bool) -> None:
    click.echo(f"{WORDS[finding.outcome]}  {finding.name:<16} {finding.says}")
    if finding.why:
        click.echo(f"      {finding.why}")
    if verbose or finding.outcome == "failed":
        hidden = 0 if verbose else max(0, len(finding.said) - LINES_SHOWN)
        if hidden:
            click.echo(f"      ({hidden} lines before these; --verbose shows them)")
        for line in finding.said[hidden:]:
            click.echo(f"      {_printable(line)}")


def _printable(text: str) -> str:
    """What a worker said must not move the cursor."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _document(asked: Asked, counts: dict[str, int], found: Sequence[Finding]) -> dict[str, Any]:
    return {
        "schema": "lockhavoc/worker-check/1",
        "command": list(asked.argv),
        "backend": asked.backend,
        "runtime": asked.runtime,
        "options": asked.options,
        **counts,
        "points": [
            {
                "name": one.name,
                "says": one.says,
                "outcome": one.outcome,
                "why": one.why,
                "said": one.said,
            }
            for one in found
        ],
    }
