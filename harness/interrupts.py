"""Ctrl-C and SIGTERM as one exception, at a moment when it can be handled.

The first signal ends the run in order: heal, save, tear down, judge what there is, exit 130.
Within ``held_back`` signals wait, so that clean-up is not torn apart by an impatient second one.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked the run to end.  No ``except Exception`` on the way may swallow it."""


_depth = 0
_pending: list[int] = []


def _handle(number: int, _: FrameType | None) -> None:
    if _depth:
        _pending.append(number)
        return
    raise Interrupted(f"interrupted by {signal.Signals(number).name}")


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns the signals into ``Interrupted`` while the block runs (main thread only)."""
    try:
        with handled(_handle):
            yield
    finally:
        _pending.clear()


@contextmanager
def handled(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Gives the signals to ``handle`` while the block runs (main thread only)."""
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """Signals that come meanwhile are noted; the block runs to its end."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
