"""Histories for comparing checkers: one simulated service, as JSON lines that both sides read.

The service is correct and blocking: waiters are granted in random order, calls and answers take
random time, all events have different times (Porcupine takes the order of lines).  ``unknown``
acquires are given up while they wait, so that nobody knows whether they will be granted; their
process retires.  ``violation``: one grant too many at 90 %, while the other holders surely hold.

    write_locks(path, operations=1000, clients=5, unknown=17, violation=True, seed=1)
    write_registers(path, operations=100_000, clients=10, seed=1)     # unique values

Trap: waiters that are still open at the end are unknown too, as in any recorded history.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any


class Lines:
    """Events in order; time is the line number."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def put(self, process: int, kind: str, f: str, value: Any) -> None:
        index = len(self.lines)
        event = {"index": index, "time": index, "process": process, "type": kind, "f": f}
        self.lines.append(json.dumps({**event, "key": "k0", "value": value}))

    def write(self, path: Path) -> None:
        path.write_text('{"schema":"lockhavoc/history/1"}\n' + "\n".join(self.lines) + "\n")


class Client:
    """One client: its process number (new after an unknown outcome), what it does, its hold."""

    def __init__(self, number: int) -> None:
        self.process = number
        self.doing = "idle"  # idle | waiting | granted | holding | releasing | released
        self.hold = ""


def write_locks(
    path: Path,
    *,
    operations: int,
    clients: int,
    seed: int,
    permits: int = 1,
    unknown: int = 0,
    violation: bool = False,
) -> None:
    """A history of acquires and releases of one lock with ``permits`` permits."""
    rng = random.Random(seed)
    out, crowd = Lines(), [Client(number) for number in range(clients)]
    lost = sorted(rng.sample(range(clients, operations * 9 // 10 - 2 * unknown), unknown))
    called = out_now = holds = 0
    broken = not violation
    processes = clients
    while called < operations:
        one = rng.choice(crowd)
        if one.doing == "idle":
            holds += 1
            one.doing, one.hold = "waiting", f"h{holds}"
            out.put(one.process, "invoke", "acquire", {"hold": one.hold})
            called += 1
            if lost and called >= lost[0] and out_now >= permits:  # given up while it waits
                lost.pop(0)
                out.put(one.process, "info", "acquire", {"hold": one.hold})
                processes += 1
                one.process, one.doing = processes, "idle"
        elif one.doing == "waiting":
            surely = sum(c.doing == "holding" for c in crowd) >= permits
            spare = not broken and called > operations * 9 // 10 and surely
            if out_now < permits or spare:
                out_now += 1
                one.doing = "granted"
            if spare:
                broken = True
                out.put(one.process, "ok", "acquire", {"hold": one.hold})
                one.doing = "holding"
        elif one.doing == "granted":
            out.put(one.process, "ok", "acquire", {"hold": one.hold})
            one.doing = "holding"
        elif one.doing == "holding" and (broken or called <= operations * 9 // 10):
            out.put(one.process, "invoke", "release", {"hold": one.hold})
            one.doing = "releasing"
            called += 1
        elif one.doing == "releasing":
            out_now -= 1
            one.doing = "released"
        elif one.doing == "released":
            out.put(one.process, "ok", "release", {"hold": one.hold})
            one.doing = "idle"
    if lost or (violation and not broken):
        raise RuntimeError(f"seed {seed}: no moment for unknowns or violation; take another")
    out.write(path)


def write_registers(path: Path, *, operations: int, clients: int, seed: int) -> None:
    """Reads, writes and compare-and-sets of one register; every written value is new."""
    rng = random.Random(seed)
    out = Lines()
    value: int | None = None
    fresh = called = 0
    doing: dict[int, tuple[str, Any, str]] = {}  # process -> f, argument, stage
    while called < operations or doing:
        process = rng.randrange(clients)
        if process not in doing:
            if called >= operations:
                continue
            f = rng.choice(("read", "write", "cas"))
            fresh += 1
            argument = {"read": None, "write": fresh, "cas": [value, fresh]}[f]
            out.put(process, "invoke", f, argument)
            doing[process] = (f, argument, "sent")
            called += 1
            continue
        f, argument, stage = doing[process]
        if stage == "sent":
            stage = "ok"
            if f == "read":
                argument = value
            elif f == "write":
                value = argument
            elif argument[0] == value:
                value = argument[1]
            else:
                stage = "fail"
            doing[process] = (f, argument, stage)
        else:
            out.put(process, stage, f, argument)
            del doing[process]
    out.write(path)
