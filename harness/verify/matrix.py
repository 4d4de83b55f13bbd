"""The matrix of one library: which cells there are, and running them.

    cells = planned("redis-py", backends=[], runtime="process", only=[], quick=False)
    document = verify("redis-py", cells, seed=7, jobs=2, ...)

With one job cells run here, one after the other; with more each has a process of its own
(side_by_side.py).  They stand in the document in the order of the plan, whichever ended first.
Ctrl-C keeps what is done.

Trap: what a run measures in ms grows on a machine that is too small for its jobs; a verdict does
not depend on it, since bounds are seconds.
"""

from __future__ import annotations

import contextlib
import difflib
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from clients.libraries import Library
from harness.core.errors import RefusedError, UserError
from harness.interrupts import Interrupted, interruptible
from harness.library_choice import settle_for
from harness.library_options import NOTHING, Chosen
from harness.registries import BACKENDS, LIBRARIES, SIM
from harness.scenario import parse
from harness.verify.cells import blank, scenario_data
from harness.verify.document import Cell, Document, scorecard
from harness.verify.model import Situation
from harness.verify.servers import SITUATIONS
from harness.verify.side_by_side import Order, Outcome, run_all, run_here
from harness.verify.traits import Traits, traits_of

Progress = Callable[[str], None]
MINUTE_S = 60


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
    jobs: int = 1,
    choice: Chosen = NOTHING,
    keep: Callable[[Document], None] = lambda _: None,
) -> Document:
    """Runs the cells and puts them into one document; ``keep`` is called after each.

    jobs: how many run at a time; simulated ones take no time and run one after the other.
    UserError or HarnessError, before the first, if the library cannot be had as chosen.
    """
    known: Library = LIBRARIES.load(library)
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
    orders = [
        Order(
            library=library, backend=one.traits.backend, runtime=one.traits.runtime,
            situation=one.situation.name, seed=seed, store_dir=str(store_dir), argv=tuple(argv),
            choice=choice,
        )
        for one in cells
    ]  # fmt: skip
    book = _Book(document, cells, progress, keep)
    try:
        with interruptible():
            _settle(cells, choice, progress)
            left = [at for at in range(len(cells)) if not book.refused(at, choice)]
            if jobs == 1 or all(cells[at].traits.runtime == SIM for at in left):
                for at in left:
                    book.began(at)
                    outcome = run_here(orders[at])
                    book.note(at, outcome)
                    if outcome.interrupted:
                        break
                left = []
    except Interrupted:
        document.interrupted, left = True, []
    if left:
        document.interrupted |= run_all(
            [orders[at] for at in left],
            jobs=jobs,
            began=lambda number: book.began(left[number]),
            ended=lambda number, outcome: book.note(left[number], outcome),
        )
    book.write()
    return document


def _settle(cells: Sequence[Planned], choice: Chosen, progress: Progress) -> None:
    """Makes the library's environment once, so that no cell has to, or says why not.

    What cannot be done here (a missing compiler) is left to the cells, which say it.
    """
    real = next((one for one in cells if not one.refused), None)
    data = None if real is None else scenario_data(real.situation, real.traits, choice)
    if real is None or data is None:
        return
    with contextlib.suppress(RefusedError):
        settle_for(parse(data, source="verify"), real.traits.runtime, progress=progress)


class _Book:
    """Keeps the document while cells end in any order, and tells how far it is."""

    def __init__(
        self,
        document: Document,
        cells: Sequence[Planned],
        progress: Progress,
        keep: Callable[[Document], None],
    ) -> None:
        self._document, self._plans = document, cells
        self._progress, self._keep = progress, keep
        self._began = time.monotonic()
        self._started: dict[int, float] = {}
        self._cells: dict[int, Cell] = {}
        self._ran = 0

    def refused(self, at: int, choice: Chosen) -> bool:
        """Notes a cell that cannot run here; False if it can."""
        plan = self._plans[at]
        if not plan.refused:
            return False
        cell = blank(plan.situation, plan.traits, seed=self._document.seed, choice=choice)
        cell.verdict, cell.says = "not-run", plan.refused
        self._cells[at] = cell
        self._progress(f"{self._place(at)}: {cell.verdict.upper()}  {cell.says}")
        self.write()
        return True

    def began(self, at: int) -> None:
        self._started[at] = time.monotonic()
        self._progress(f"{self._place(at)}: {self._plans[at].situation.says}")

    def note(self, at: int, outcome: Outcome) -> None:
        """Takes in what came of a cell."""
        self._document.versions.update(outcome.versions)
        self._document.interrupted |= outcome.interrupted
        if outcome.cell is not None:
            self._cells[at] = outcome.cell
            self._ran += 1
            took_s = time.monotonic() - self._started[at]
            self._progress(
                f"{self._place(at)}: {outcome.cell.verdict.upper()} in {took_s:.0f} s{self._left()}"
                f"  {outcome.cell.says}"
            )
        self.write()

    def write(self) -> None:
        document = self._document
        document.cells = [self._cells[at] for at in sorted(self._cells)]
        document.duration_ms = round((time.monotonic() - self._began) * 1000)
        document.scorecard = scorecard(document.cells)
        self._keep(document)

    def _place(self, at: int) -> str:
        plan = self._plans[at]
        return f"[{at + 1}/{len(self._plans)}] {plan.traits.backend} {plan.situation.name}"

    def _left(self) -> str:
        """How much is left, from the time that each took so far."""
        left = len(self._plans) - len(self._cells)
        if not left or self._document.interrupted:
            return ""
        seconds = (time.monotonic() - self._began) / self._ran * left
        about = f"{seconds:.0f} s" if seconds < MINUTE_S else f"{seconds / MINUTE_S:.0f} min"
        return f" ({left} left, about {about})"
