"""From the harness' times to the workers' own: tighter intervals, same events.

The harness knows when it sent an operation and when it received the answer; the worker knows when
it really called the library and when the call returned.  All processes of a machine read one
CLOCK_MONOTONIC, so send <= invoke <= complete <= receipt must hold.  Where it does, the worker's
stamps are used; where it does not, the harness' stay and the operation is counted.

Why it matters: a stopped worker takes its next operation up late.  By the harness' times the late
write would seem to have been under way all along, and a stale write would look concurrent.
"""

from __future__ import annotations

from harness.core.history import NEMESIS, Op, Type


def tighten(ops: list[Op]) -> tuple[list[Op], int]:
    """Ops with the workers' times, sorted and numbered anew; and how many kept the harness'.

    Ops that carry no stamps stay as they are, so doing it twice changes nothing.  At equal times
    the order of the input is kept: operations of one process must not change places, and for all
    others equal times are concurrent anyway.  The given ops are changed in place.
    """
    pending: dict[int | str, Op] = {}
    loose = moved = 0
    for op in ops:
        if op.type == Type.INVOKE:
            pending[op.process] = op
            continue
        if op.process == NEMESIS:
            continue
        sent = pending.pop(op.process, None)
        if not op.extra:
            continue
        invoke, complete = op.extra.pop("invoke", None), op.extra.pop("complete", None)
        if sent is None or invoke is None or complete is None:
            continue
        if sent.time <= invoke <= complete <= op.time:
            sent.time, op.time = invoke, complete
            moved += 1
        else:
            loose += 1
    if not moved:
        return ops, loose
    tight = sorted(ops, key=_time)
    for index, op in enumerate(tight):
        op.index = index
    return tight, loose


def _time(op: Op) -> int:
    return op.time
