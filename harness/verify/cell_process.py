"""The process of one cell: ``python -m harness.verify.cell_process ORDER``; see side_by_side.py.

Answers with an Outcome as JSON on stdout, whatever else may print there.  Ends like after Ctrl-C
when its stdin closes, which is what happens when the process that started it dies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import msgspec

from harness.interrupts import Interrupted, interruptible
from harness.verify.side_by_side import Order, Outcome, run_here


def main() -> int:
    order = msgspec.json.decode(sys.argv[1], type=Order)
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        with interruptible():
            threading.Thread(target=_lifeline, daemon=True).start()
            outcome = run_here(order)
    except Interrupted:
        outcome = Outcome(interrupted=True)
    with os.fdopen(answer, "wb") as out:
        out.write(msgspec.json.encode(outcome))
    return 0


def _lifeline() -> None:
    # Not sys.stdin: its lock would be in the way of a daemon thread at the interpreter's end.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
