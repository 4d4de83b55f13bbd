"""trace.json: the run as a Chrome trace, for ui.perfetto.dev and chrome://tracing.

    trace(report, data)          # JSON, bytes

Processes of the trace are the roles (workers, locks, resource, faults, anomalies), its threads are
the workers, locks and faults, so that each is a track with its name.  Times are microseconds.

Trap: those viewers load everything at once.  With more operations than REPORT_DETAIL_OPS_MAX the
trace has those around the worst anomaly (or the first ones), and says so in ``otherData``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.core.limits import REPORT_DETAIL_OPS_MAX
from harness.report.document import RunReport
from harness.report.escape import safe
from harness.report.holds import Bar
from harness.report.marks import ACCEPTED, STALE
from harness.report.timeline import Timeline, short

WORKERS, LOCKS, RESOURCE, FAULTS, ANOMALIES = 1, 2, 3, 4, 5
_ROLES = {
    WORKERS: "workers",
    LOCKS: "locks, as the service sees them",
    RESOURCE: "resource",
    FAULTS: "faults",
    ANOMALIES: "anomalies",
}
_HOW = {ACCEPTED: "write accepted", STALE: "STALE write accepted"}


def trace(report: RunReport, data: Timeline) -> bytes:
    """The trace of a run as a JSON document."""
    ops = data.view.history.intervals()
    first, last = window(data)
    events = [*_roles(report, data), *_ops(data, first, last)]
    events += [event for bar in data.bars for event in _hold(bar, data)]
    events += _writes(data)
    events += _faults(report, data)
    events += _anomalies(data)
    document = {
        "displayTimeUnit": "ms",
        "otherData": {
            "run": safe(report.name),
            "says": safe(report.says),
            "operations": f"{first} to {last} of {len(ops)}",
        },
        "traceEvents": events,
    }
    return msgspec.json.encode(document)


def window(data: Timeline) -> tuple[int, int]:
    """Places [first, last) of the operations that the trace holds."""
    ops = data.view.history.intervals()
    if len(ops) <= REPORT_DETAIL_OPS_MAX:
        return 0, len(ops)
    worst = next((mark for mark in data.marks if mark.ops), None)
    middle = 0
    if worst is not None:
        middle = next(place for place, op in enumerate(ops) if op is worst.ops[-1])
    first = max(0, min(middle - REPORT_DETAIL_OPS_MAX // 2, len(ops) - REPORT_DETAIL_OPS_MAX))
    return first, first + REPORT_DETAIL_OPS_MAX


def _span(role: int, track: int, name: str, start_ns: int, end_ns: int, **args: Any) -> Any:
    return {
        "ph": "X",
        "pid": role,
        "tid": track,
        "name": name,
        "ts": start_ns / 1000,
        "dur": max(0, end_ns - start_ns) / 1000,
        "args": args,
    }


def _instant(role: int, track: int, name: str, time_ns: int, **args: Any) -> Any:
    return {
        "ph": "i", "s": "p", "pid": role, "tid": track, "name": name, "ts": time_ns / 1000,
        "args": args,
    }  # fmt: skip


def _label(kind: str, role: int, track: int, name: str) -> Any:
    return {"ph": "M", "pid": role, "tid": track, "name": kind, "args": {"name": name}}


def _roles(report: RunReport, data: Timeline) -> Iterator[Any]:
    for role, name in _ROLES.items():
        yield _label("process_name", role, 0, name)
        yield {"ph": "M", "pid": role, "name": "process_sort_index", "args": {"sort_index": role}}
    for row, label in enumerate(data.meta["rows"]):
        yield _label("thread_name", WORKERS, 2 * row, label)
        yield _label("thread_name", WORKERS, 2 * row + 1, f"{label} believes")
    for place, key in enumerate(data.meta["keys"]):
        yield _label("thread_name", LOCKS, place, f"lock {key}")
    for fault in report.faults:
        yield _label("thread_name", FAULTS, fault.id, f"#{fault.id} {short(fault.kind)}")


def _ops(data: Timeline, first: int, last: int) -> Iterator[Any]:
    end_ns = data.view.history.end_ns
    for op in data.view.history.intervals()[first:last]:
        done = op.complete
        args = {"process": op.invoke.process, "event": op.invoke.index, "outcome": op.outcome}
        if op.invoke.key is not None:
            args["key"] = short(op.invoke.key)
        hold = op.field("hold")
        if hold is not None:
            args["hold"] = short(hold)
        if done is not None and done.error:
            args["error"] = short(done.error)
        stop = end_ns if done is None else done.time
        track = 2 * data.row_of(op.invoke.process)
        yield _span(WORKERS, track, short(op.invoke.f), op.call_ns, stop, **args)


def _hold(bar: Bar, data: Timeline) -> Iterator[Any]:
    row = data.row_of(bar.process)
    name = "hold" if bar.token is None else f"hold, token {bar.token}"
    if bar.believed_ns is not None:
        yield _span(WORKERS, 2 * row + 1, name, bar.granted_ns, bar.believed_ns, ended=bar.why)
    if bar.lease_from_ns is not None and bar.lease_sure_ns is not None:
        who = data.meta["rows"][row] if row < len(data.meta["rows"]) else "?"
        place = data.key_of(bar.key)
        yield _span(LOCKS, place, f"{who}", bar.lease_from_ns, bar.lease_sure_ns)


def _writes(data: Timeline) -> Iterator[Any]:
    for write in data.writes:
        name = _HOW.get(write.how, "write refused")
        yield _instant(RESOURCE, 0, name, write.time_ns, hold=short(write.hold))


def _faults(report: RunReport, data: Timeline) -> Iterator[Any]:
    for fault in report.faults:
        end_ns = data.view.history.end_ns if fault.end_ns is None else fault.end_ns
        yield _span(
            FAULTS, fault.id, f"{short(fault.kind)} on {short(', '.join(fault.targets))}",
            fault.start_ns, end_ns, bit=fault.bit, healed=fault.healed, says=safe(fault.says),
        )  # fmt: skip


def _anomalies(data: Timeline) -> Iterator[Any]:
    for mark in data.marks:
        if mark.ops:
            name = f"{short(mark.result.checker)}: {short(mark.anomaly.kind)}"
            says = safe(mark.anomaly.says)
            yield _instant(ANOMALIES, 0, name, mark.end_ns, number=mark.number, says=says)
