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

    At equal times the order of the input is kept: operations of one process must not change
    places, and for all others equal times are concurrent anyway.
    """
    times = [op.time for op in ops]
    pending: dict[int | str, int] = {}
    loose = 0
    for position, op in enumerate(ops):
        if op.process == NEMESIS:
            continue
        if op.type == Type.INVOKE:
            pending[op.process] = position
            continue
        sent = pending.pop(op.process, None)
        invoke, complete = op.extra.get("invoke"), op.extra.get("complete")
        if sent is None or invoke is None or complete is None:
            continue
        if ops[sent].time <= invoke <= complete <= op.time:
            times[sent], times[position] = invoke, complete
        else:
            loose += 1
    order = sorted(range(len(ops)), key=times.__getitem__)
    tight = []
    for index, position in enumerate(order):
        op = ops[position]
        extra = {k: v for k, v in op.extra.items() if k not in ("invoke", "complete")}
        tight.append(
            Op(index, times[position], op.process, op.type, op.f, op.key, op.value, op.error, extra)
        )
    return tight, loose
