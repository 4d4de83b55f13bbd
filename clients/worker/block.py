"""Blocks the main thread when asked to by a signal: a callback that computes, a call that hangs.

SIGUSR2 blocks it (and with it an event loop), SIGUSR1 lets it go on.  Other threads run on, so a
library that renews in a thread keeps its lease and one that renews in the loop loses it, which is
the difference to SIGSTOP.  While it is blocked the process calls itself ``lh-blocked``
(/proc/PID/comm), which is how anybody can see that it is.

Trap: Python runs signal handlers in the main thread between two of its own instructions.  A call
into C that does not come back is not interrupted, and then the name does not change either.
"""

from __future__ import annotations

import signal
import time

NAME = "lh-blocked"
COMM = "/proc/self/comm"
LOOK_S = 0.001

_state = {"blocked": False}


def install() -> None:
    """Takes SIGUSR1 and SIGUSR2; to be called in the main thread."""
    signal.signal(signal.SIGUSR1, _unblock)
    signal.signal(signal.SIGUSR2, _block)


def _block(number: int, frame: object) -> None:
    if _state["blocked"]:
        return
    _state["blocked"] = True
    with open(COMM) as file:
        name = file.read().strip()
    _call(NAME)
    try:
        while _is_blocked():
            time.sleep(LOOK_S)  # lets go of the interpreter, so that other threads run
    finally:
        _state["blocked"] = False
        _call(name)


def _is_blocked() -> bool:
    return _state["blocked"]


def _unblock(number: int, frame: object) -> None:
    _state["blocked"] = False


def _call(name: str) -> None:
    with open(COMM, "w") as file:
        file.write(name)
