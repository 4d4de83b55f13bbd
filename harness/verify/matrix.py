"""The matrix of one library: which cells there are, and running them one after the other.

    cells = planned("redis-py", backends=[], runtime="process", only=[], quick=False)
    for cell in run(cells, seed=7, ...): ...

One at a time, since two clusters on one machine would falsify each other's times.  Ctrl-C keeps
what is done.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from clients.libraries import Library
from harness.core.errors import EXIT_INTERRUPTED, RefusedError, UserError
from harness.interrupts import Interrupted, interruptible
from harness.library_options import NOTHING, Chosen
from harness.registries import BACKENDS, LIBRARIES, SIM
from harness.verify.cells import blank, run_cell
from harness.verify.document import Cell, Document, scorecard
from harness.verify.model import Situation
from harness.verify.servers import SITUATIONS
from harness.verify.traits import Traits, traits_of

Progress = Callable[[str], None]


class Planned(msgspec.Struct, frozen=True):
    """A cell to run, or why its backend cannot run here."""

    situation: Situation
    traits: Traits
    refused: str = ""


def planned(
    library: str,
    *,
    backends: Sequence[str],
    runtime: str,
    only: Sequence[str],
    quick: bool,
    key: bool = False,
) -> list[Planned]:
    """The cells of a library, safety first; UserError for names that do not exist.

    backends: all of the library that stand for themselves if empty (the simulated one only where
    it is asked for).
    """
    known: Library = LIBRARIES.load(library)
    chosen = list(backends) or _default_backends(known, runtime)
    for name in chosen:
        if name not in known.backends:
            raise UserError(
                f"--backend: {library!r} does not run on {name!r} "
                f"(it runs on: {', '.join(known.backends)})"
            )
    for name in only:
        if name not in SITUATIONS:
            close = difflib.get_close_matches(name, SITUATIONS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(SITUATIONS)}"
            raise UserError(f"--only: unknown situation {name!r}; {hint}")
    wanted = [
        one
        for one in SITUATIONS.values()
        if (not only or one.name in only) and (only or not quick or one.quick)
        and (not key or one.key)
    ]  # fmt: skip
    found = []
    for backend in chosen:
        real, refused = _runtime(runtime, backend)
        traits = traits_of(library, backend, real)
        found += [Planned(one, traits, refused) for one in wanted if one.build(traits) is not None]
    if not found:
        raise UserError(
            f"no situation of {', '.join(only) or 'the table'} applies to {library!r} on "
            f"{', '.join(chosen)}"
        )
    return sorted(found, key=lambda plan: plan.situation.kind != "safety")


def _default_backends(library: Library, runtime: str) -> list[str]:
    if runtime == SIM:
        return [name for name in library.backends if name == SIM]
    return [name for name in library.backends if name in BACKENDS]


def _runtime(runtime: str, backend: str) -> tuple[str, str]:
    """(runtime, why it cannot be had)."""
    if SIM in (runtime, backend):
        return SIM, ""
    from compose.doctor import choose

    try:
        return choose(runtime, backend), ""
    except RefusedError as error:
        return runtime, " ".join(str(error).split())


def verify(
    library: str,
    cells: Sequence[Planned],
    *,
    seed: int,
    store_dir: Path,
    argv: Sequence[str],
    command: str,
    progress: Progress,
    choice: Chosen = NOTHING,
    keep: Callable[[Document], None] = lambda _: None,
) -> Document:
    """Runs the cells and puts them into one document; ``keep`` is called after each."""
    known: Library = LIBRARIES.load(library)
    began = time.monotonic()
    document = Document(
        library=library,
        about=known.says,
        lease=known.lease,
        fencing=known.fencing,
        loss_signal=known.loss_signal,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        seed=seed,
    )
    try:
        with interruptible():
            for number, plan in enumerate(cells, 1):
                place = f"[{number}/{len(cells)}] {plan.traits.backend} {plan.situation.name}"
                progress(f"{place}: {plan.situation.says}")
                cell, interrupted = _one(plan, document, seed, store_dir, argv, choice)
                document.cells.append(cell)
                document.interrupted |= interrupted
                document.duration_ms = round((time.monotonic() - began) * 1000)
                document.scorecard = scorecard(document.cells)
                progress(f"{place}: {cell.verdict.upper()}  {cell.says}")
                keep(document)
                if interrupted:
                    break
    except Interrupted:
        document.interrupted = True
    document.scorecard = scorecard(document.cells)
    keep(document)
    return document


def _one(
    plan: Planned,
    document: Document,
    seed: int,
    store_dir: Path,
    argv: Sequence[str],
    choice: Chosen,
) -> tuple[Cell, bool]:
    """(the cell, was it interrupted)."""
    if plan.refused:
        cell = blank(plan.situation, plan.traits, seed=seed, choice=choice)
        cell.verdict, cell.says = "not-run", plan.refused
        return cell, False
    cell, report = run_cell(
        plan.situation,
        plan.traits,
        seed=seed,
        store_dir=store_dir,
        argv=argv,
        choice=choice,
    )
    if report is None:
        return cell, False
    document.versions.update(report.versions)
    if report.exit_code == EXIT_INTERRUPTED or any("interrupted" in f for f in report.failures):
        if cell.verdict != "worse":
            cell.verdict, cell.says = "unknown", "interrupted before its end"
        return cell, True
    return cell, False
