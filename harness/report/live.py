"""What a run does right now: a few lines that move on a terminal, a line now and then elsewhere.

    progress = display(quiet=False)        # a callable that takes a line
    progress("starting valkey-single")
    if isinstance(progress, Screen):
        progress.show(Moment(name="holder-pause", now_ns=..., ...))
    progress.rest()                        # before anything else is printed

On a terminal the last lines are redrawn four times a second with the faults under way and who holds
the lock; piped, with TERM=dumb, or under CI there is one plain line every two seconds.  NO_COLOR
takes the colours away.  All of it goes to stderr: results alone go to stdout.

Traps.  Only a snapshot is handed over; another thread draws it, since the loop that aims faults
must not wait for a terminal.  When output is redirected, rich shows the last frame only, so there a
``Screen`` is never made.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO

import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text

from harness.core.clock import NS_PER_MS, NS_PER_S
from harness.report.escape import safe

PLAIN_EVERY_NS = 2 * NS_PER_S
SCREEN_EVERY_NS = 250 * NS_PER_MS
_REFRESH_PER_S = 4
_HOLDS_MAX = 6


class Held(msgspec.Struct, frozen=True):
    """A hold as the harness knows it.  Times in ns since the start; no end: it does not expire."""

    worker: int
    key: str
    since_ns: int
    expires_ns: int | None


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a run.  until_ns: end of its main phase.  faults: in words."""

    name: str
    now_ns: int
    until_ns: int
    events: int
    holds: Sequence[Held] = ()
    waiting: Sequence[int] = ()
    faults: str = ""
    harmed: bool = False  # a fault is under way


def line(moment: Moment) -> str:
    """The moment in one line."""
    holds = ", ".join(f"{hold.key}: w{hold.worker}" for hold in moment.holds[:_HOLDS_MAX])
    held = f"  holds {holds}" if holds else ""
    return safe(f"{moment.now_ns / NS_PER_S:5.0f} s  {moment.events} events{held}  {moment.faults}")


def screen(moment: Moment) -> Text:
    """The moment in a few lines, for a terminal."""
    shown = Text.assemble(
        (safe(moment.name), "bold"),
        f"  {moment.now_ns / NS_PER_S:.1f} of {moment.until_ns / NS_PER_S:.1f} s"
        f"  {moment.events} events\n",
    )
    for hold in moment.holds[:_HOLDS_MAX]:
        shown.append(f"  {safe(hold.key)} ", "dim")
        shown.append(f"w{hold.worker}", "bold cyan")
        shown.append(f" since {(moment.now_ns - hold.since_ns) / NS_PER_S:.1f} s")
        if hold.expires_ns is not None:
            left = (hold.expires_ns - moment.now_ns) / NS_PER_S
            words = (
                f", lease ends in {left:.1f} s" if left > 0 else f", lease over for {-left:.1f} s"
            )
            shown.append(words, "" if left > 0 else "bold red")
        shown.append("\n")
    if not moment.holds:
        shown.append("  nobody holds a lock\n", "dim")
    if moment.waiting:
        names = " ".join(f"w{worker}" for worker in sorted(moment.waiting))
        shown.append(f"  waiting: {names}\n", "dim")
    shown.append(f"  {safe(moment.faults)}", "bold magenta" if moment.harmed else "")
    return shown


class Plain:
    """Progress as plain lines."""

    every_ns = PLAIN_EVERY_NS

    def __init__(self, file: IO[str] | None, *, quiet: bool = False) -> None:
        self._file, self._quiet = file, quiet

    def __call__(self, text: str) -> None:
        if not self._quiet:
            print(text, file=self._file or sys.stderr, flush=True)

    def rest(self) -> None:
        """Nothing to clear."""


class Screen:
    """Progress on a terminal: lines scroll by, the moment stays below them."""

    every_ns = SCREEN_EVERY_NS

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._moment: Moment | None = None

    def __call__(self, text: str) -> None:
        self._console.print(Text(safe(text)))

    def show(self, moment: Moment) -> None:
        """What is drawn from now on."""
        self._moment = moment
        if self._live is None:
            self._live = Live(
                console=self._console,
                get_renderable=self._draw,
                refresh_per_second=_REFRESH_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def rest(self) -> None:
        """Clears the moving lines, so that others may print."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self) -> Text:
        return Text() if self._moment is None else screen(self._moment)


def display(*, quiet: bool, file: IO[str] | None = None) -> Plain | Screen:
    """The way to show progress on ``file`` (stderr)."""
    if quiet:
        return Plain(file, quiet=True)
    console = Console(file=file or sys.stderr, highlight=False, markup=False, emoji=False)
    if console.is_terminal and not console.is_dumb_terminal and console.is_interactive:
        return Screen(console)
    return Plain(file)
