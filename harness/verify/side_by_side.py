"""Cells side by side, each in a process of its own, so that none of them can disturb another.

    run_all([Order(...), Order(...)], jobs=2, began=print, ended=lambda at, outcome: ...)

A run owns the signals, the descriptors and the interpreter of its process, so threads would not
do.  The process (cell_process.py) gets its order as its argument and answers with one JSON document
on stdout; its stdin is a lifeline: when we die, it ends, and it takes its run down like after
Ctrl-C.  Results come as they are ready; ``at`` says whose they are.

Traps.  A signal becomes an event in the queue of results, never an exception, so that no result can
fall between two statements.  Children have sessions of their own: Ctrl-C on a terminal reaches them
through us, once.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from harness.core.errors import EXIT_INTERRUPTED
from harness.interrupts import handled
from harness.library_options import NOTHING, Chosen
from harness.verify.cells import blank, run_cell
from harness.verify.document import Cell
from harness.verify.servers import SITUATIONS
from harness.verify.traits import traits_of

CHILD = "harness.verify.cell_process"
WORDS_SHOWN = 300  # of what a process said before it died


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A cell to run: names only, so that it can go to another process."""

    library: str
    backend: str
    runtime: str
    situation: str
    seed: int
    store_dir: str
    argv: tuple[str, ...] = ()
    choice: Chosen = NOTHING


class Outcome(msgspec.Struct, kw_only=True):
    """What came of it.  cell: None if it was interrupted before it had begun."""

    cell: Cell | None = None
    versions: dict[str, str] = {}
    interrupted: bool = False


Began = Callable[[int], None]
Ended = Callable[[int, Outcome], None]


def run_here(order: Order) -> Outcome:
    """Runs a cell in this process; signals are the caller's business."""
    cell, report = run_cell(
        SITUATIONS[order.situation],
        traits_of(order.library, order.backend, order.runtime),
        seed=order.seed,
        store_dir=Path(order.store_dir),
        argv=order.argv,
        choice=order.choice,
    )
    if report is None:
        return Outcome(cell=cell)
    cut = report.exit_code == EXIT_INTERRUPTED or any("interrupted" in f for f in report.failures)
    if cut and cell.verdict != "worse":
        cell.verdict, cell.says = "unknown", "interrupted before its end"
    return Outcome(cell=cell, versions=dict(report.versions), interrupted=cut)


def run_all(orders: Sequence[Order], *, jobs: int, began: Began, ended: Ended) -> bool:
    """Runs the orders, at most ``jobs`` at a time; True if a signal cut it short.

    After a signal no other cell begins, and those that run are waited for: they tear down.
    """
    events: queue.SimpleQueue[tuple[int, Outcome] | None] = queue.SimpleQueue()
    children: dict[int, subprocess.Popen[bytes]] = {}
    waiting = list(enumerate(orders))[::-1]
    interrupted = False
    # ``SimpleQueue.put`` may be called from a handler.
    with handled(lambda _number, _frame: events.put(None)):
        while waiting or children:
            while waiting and len(children) < jobs:
                at, order = waiting.pop()
                began(at)
                children[at] = _start(at, order, events)
            event = events.get()
            if event is None:
                interrupted = True
                waiting.clear()
                for child in children.values():
                    child.send_signal(signal.SIGINT)
                continue
            at, outcome = event
            with children.pop(at) as child:
                child.wait()
            interrupted |= outcome.interrupted
            if outcome.interrupted:
                waiting.clear()
            ended(at, outcome)
    return interrupted


def _start(
    at: int, order: Order, events: queue.SimpleQueue[tuple[int, Outcome] | None]
) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-m", CHILD, msgspec.json.encode(order).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    threading.Thread(
        target=lambda: events.put((at, _outcome(child, order))), name=f"cell-{at}", daemon=True
    ).start()
    return child


def _outcome(child: subprocess.Popen[bytes], order: Order) -> Outcome:
    """What a child answered; a cell that says why if it did not.  Never raises.

    Read by hand, since ``communicate`` would close its stdin, which is its lifeline.
    """
    assert child.stdout is not None
    assert child.stderr is not None
    words: list[bytes] = []
    stderr = child.stderr
    drain = threading.Thread(target=lambda: words.append(stderr.read()), daemon=True)
    drain.start()
    said = child.stdout.read()
    status = child.wait()
    drain.join()
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(said, type=Outcome)
    traits = traits_of(order.library, order.backend, order.runtime)
    cell = blank(SITUATIONS[order.situation], traits, seed=order.seed, choice=order.choice)
    last = " ".join(b"".join(words).decode(errors="replace").split())[-WORDS_SHOWN:]
    cell.says = f"its process ended with exit status {status}: {last or 'it said nothing'}"
    return Outcome(cell=cell)
