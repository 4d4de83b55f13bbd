"""The data of the timeline: rows, packed columns of operations and holds, faults, anomalies.

    data = timeline(report, history, context, nodes=["redis1"])
    data.meta      # small, JSON; times in ms since the start of the run
    data.blocks    # "ops", "holds", "writes", "detail": columns.Block;  data.names: squeezed JSON

Rows are workers, not processes: a worker goes on under a new process number after an unknown
outcome.  Columns are sorted by their start, so that the page finds a window by bisection.

Traps.  JavaScript has no 64-bit integers: times go as multiples of ``unit_ns`` (columns.py), tokens
as two halves.  Strings from outside go through escape.py here; the page sets them as text only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, LOCK_F
from checkers.view import View
from harness.core.history import History, Interval, Type
from harness.core.limits import REPORT_DETAIL_OPS_MAX, REPORT_ROWS_MAX
from harness.core.protocols import CheckContext, FaultWindow
from harness.report import columns
from harness.report.columns import Block
from harness.report.document import RunReport
from harness.report.escape import safe
from harness.report.holds import Bar, bars
from harness.report.marks import STALE, Mark, Overlap, Write, marks, overlaps_of, writes_of

OK, FAIL, INFO, OPEN = 0, 1, 2, 3
NOBODY = 255
_NEAR = 40  # operations kept on either side of an anomaly, where not all keep their details
_TEXT_MAX = 80
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,80}")  # nothing to escape or mask; most names are so
_BELIEVED, _LEASED, _ENDLESS, _READS = 1, 2, 4, 8


RowOf = Callable[[int | str | None], int]


class Names:
    """A table of strings; the place of one is its number."""

    def __init__(self, names_max: int) -> None:
        self.table: list[str] = []
        self._places: dict[Any, int] = {}
        self._max = names_max

    def __call__(self, name: Any) -> int:
        place = self._places.get(name)
        if place is None:
            if len(self.table) >= self._max:
                return self._max
            place = self._places[name] = len(self.table)
            self.table.append("" if name is None else short(name))
        return place


class Timeline(msgspec.Struct, kw_only=True):
    """What the page draws, and what the rest of the report is told from."""

    meta: dict[str, Any]
    blocks: dict[str, Block]
    names: str
    marks: list[Mark]
    bars: list[Bar]
    writes: list[Write]
    overlaps: list[Overlap]
    view: View
    row_of: RowOf
    key_of: Names


def timeline(
    report: RunReport, history: History, context: CheckContext, *, nodes: Sequence[str] = ()
) -> Timeline:
    """Everything that the page draws of one run.  nodes: names of the servers, where known."""
    view = View(history, context)
    rows, row_of = _rows(view)
    found = bars(view)
    writes = writes_of(view, found, context)
    clashes = overlaps_of(view, found)
    told = marks(report, history)
    end_ns = max([history.end_ns, *(write.time_ns for write in writes[-1:])])
    unit = columns.unit_ns(end_ns)
    keys = Names(0xFFFF)
    ops, functions = _ops(history.intervals(), row_of, unit, end_ns)
    meta = {
        "unit_ms": unit / 1e6,
        "end_ms": end_ns / 1e6,
        "ops": len(history.intervals()),
        "rows": rows,
        "functions": functions,
        "acquires": [n for n, name in enumerate(functions) if LOCK_F.get(name) == ACQUIRE],
        "faults": [_fault(fault, end_ns) for fault in report.faults],
        "nodes": _nodes(report.faults, nodes),
        "anomalies": [_mark(mark, row_of) for mark in told],
        "overlaps": [_overlap(clash, row_of, keys) for clash in clashes],
        "modes": view.sharing.modes,
        "permits": view.sharing.k,
        "focus": _focus(told, report.faults, end_ns),
        "details": "all" if len(history.intervals()) <= REPORT_DETAIL_OPS_MAX else "near",
    }
    blocks = {
        "ops": ops,
        "holds": _hold_block(found, row_of, keys, unit, end_ns),
        "writes": _write_block(writes, row_of, keys, unit),
    }
    blocks["detail"], detail_names = _details(history.intervals(), told)
    meta["keys"] = keys.table
    meta["layouts"] = {name: block.layout for name, block in blocks.items()}
    return Timeline(
        meta=meta,
        blocks=blocks,
        names=detail_names,
        marks=told,
        bars=found,
        writes=writes,
        overlaps=clashes,
        view=view,
        row_of=row_of,
        key_of=keys,
    )


def short(text: object) -> str:
    """A string from outside, harmless and not endless."""
    text = str(text)
    if _PLAIN.fullmatch(text):
        return text
    text = safe(text)
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"


def to_ms(time_ns: int) -> float:
    return time_ns / 1e6


def _rows(view: View) -> tuple[list[str], RowOf]:
    """Labels of the workers' rows, and the row of a process (NOBODY if it has none)."""
    places: dict[int | str, int] = {}
    labels: list[str] = []
    processes = {op.invoke.process for op in view.history.intervals()}
    known = {process: view.worker(process) for process in processes}
    workers = sorted({worker for worker in known.values() if worker is not None})
    others = sorted(str(process) for process, worker in known.items() if worker is None)
    for worker in workers:
        places[worker] = min(len(labels), REPORT_ROWS_MAX)
        labels.append(f"w{worker}")
    for name in others:
        places[name] = min(len(labels), REPORT_ROWS_MAX)
        labels.append(short(name))
    if len(labels) > REPORT_ROWS_MAX:
        labels[REPORT_ROWS_MAX:] = [f"{len(labels) - REPORT_ROWS_MAX} more"]
    rows = {
        process: places[str(process) if worker is None else worker]
        for process, worker in known.items()
    }

    def row_of(process: int | str | None) -> int:
        return NOBODY if process is None else rows.get(process, NOBODY)

    return labels, row_of


def _ops(
    intervals: Sequence[Interval], row_of: RowOf, unit: int, end_ns: int
) -> tuple[Block, list[str]]:
    """All operations: start, duration (to the end of the history if none is known), row, kind."""
    outcomes = {Type.OK: OK, Type.FAIL: FAIL, Type.INFO: INFO}
    functions = Names(63)
    starts, lasts, rows, kinds = [], [], [], []
    for op in intervals:
        invoke, done = op.invoke, op.complete
        start = invoke.time // unit
        starts.append(start)
        lasts.append((end_ns if done is None else done.time) // unit - start)
        rows.append(row_of(invoke.process))
        outcome = OPEN if done is None else outcomes.get(Type(done.type), INFO)
        kinds.append(functions(invoke.f) * 4 + outcome)
    block = columns.pack(
        {
            "start": columns.delta(starts),
            "last": columns.words(lasts),
            "row": columns.small(rows),
            "kind": columns.small(kinds),
        }
    )
    return block, functions.table


def _hold_block(found: Sequence[Bar], row_of: RowOf, keys: Names, unit: int, end_ns: int) -> Block:
    """All holds; times after ``granted`` are counted from it, those before too."""
    names = ("granted", "asked", "believed", "lease", "sure", "latest", "key", "low", "high")
    column: dict[str, list[int]] = {name: [] for name in (*names, "row", "flags")}
    for bar in found:
        granted = bar.granted_ns // unit
        lease = bar.lease_from_ns
        endless = lease is not None and bar.lease_last_ns is None
        latest = end_ns if bar.lease_last_ns is None else bar.lease_last_ns
        believed = bar.granted_ns if bar.believed_ns is None else bar.believed_ns
        flags = _BELIEVED * (bar.believed_ns is not None) + _LEASED * (lease is not None)
        token = -1 if bar.token is None else bar.token
        column["granted"].append(granted)
        column["asked"].append(max(0, granted - bar.asked_ns // unit))
        column["believed"].append(max(0, believed // unit - granted))
        column["lease"].append(max(0, (lease or 0) // unit - granted))
        column["sure"].append(max(0, (bar.lease_sure_ns or 0) // unit - granted))
        column["latest"].append(max(0, latest // unit - granted))
        column["key"].append(keys(bar.key))
        # Tokens count from 0, "none" is 0 here: so shifted by one.
        column["low"].append((token + 1) & 0xFFFFFFFF)
        column["high"].append((token + 1) >> 32 & 0x1FFFFF)
        column["row"].append(row_of(bar.process))
        column["flags"].append(flags + _ENDLESS * endless + _READS * bar.reads)
    packed = {name: columns.words(column[name]) for name in names}
    packed["granted"] = columns.delta(column["granted"])
    packed["key"] = columns.short(column["key"])
    packed["row"] = columns.small(column["row"])
    packed["flags"] = columns.small(column["flags"])
    return columns.pack(packed)


def _write_block(writes: Sequence[Write], row_of: RowOf, keys: Names, unit: int) -> Block:
    ordered = sorted(writes, key=lambda write: write.time_ns)
    return columns.pack(
        {
            "time": columns.delta([max(0, write.time_ns) // unit for write in ordered]),
            "row": columns.small(row_of(write.process) for write in ordered),
            "how": columns.small(write.how for write in ordered),
            "key": columns.short(keys(write.key) for write in ordered),
        }
    )


def _fault(fault: FaultWindow, end_ns: int) -> dict[str, Any]:
    return {
        "id": fault.id,
        "kind": short(fault.kind),
        "targets": [short(target) for target in fault.targets],
        "when": short(fault.when),
        "start": to_ms(fault.start_ns),
        "end": to_ms(end_ns if fault.end_ns is None else fault.end_ns),
        "bit": fault.bit,
        "healed": fault.healed,
        "says": safe(fault.says)[:400],
    }


def _nodes(faults: Sequence[FaultWindow], nodes: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of the servers, with the faults that hit each or a link to it."""
    names = dict.fromkeys(nodes)
    for fault in faults:
        for target in fault.targets:
            name = node_of(target)
            if name is not None:
                names[name] = None
    return [
        {"label": short(name), "faults": [f.id for f in faults if _hits(f, name)]}
        for name in sorted(names)
    ]


def node_of(target: str) -> str | None:
    """The server that a target names: "redis1", or the end of the link "w3-redis1"."""
    worker, dash, node = target.partition("-")
    if is_worker(worker):
        return node if dash else None
    return target


def is_worker(target: str) -> bool:
    """Whether a target is a worker such as "w3"."""
    return target.startswith("w") and target[1:].isdigit()


def _hits(fault: FaultWindow, node: str) -> bool:
    return any(node_of(target) == node for target in fault.targets)


def _mark(mark: Mark, row_of: RowOf) -> dict[str, Any]:
    anomaly = mark.anomaly
    return {
        "number": mark.number,
        "checker": short(mark.result.checker),
        "kind": short(anomaly.kind),
        "side": "" if anomaly.side is None else str(anomaly.side),
        "start": to_ms(mark.start_ns),
        "end": to_ms(mark.end_ns),
        "rows": sorted({row_of(op.invoke.process) for op in mark.ops}),
        "says": safe(anomaly.says)[:600],
        "placed": bool(mark.ops),
    }


def _overlap(clash: Overlap, row_of: RowOf, keys: Names) -> list[Any]:
    rows = [row_of(clash.first.process), row_of(clash.second.process)]
    kind = 1 if clash.kind == "lease" else 0
    return [to_ms(clash.start_ns), to_ms(clash.end_ns), *rows, keys(clash.first.key), kind]


def _focus(told: Sequence[Mark], faults: Sequence[FaultWindow], end_ns: int) -> list[float]:
    """What the page shows first: the worst anomaly with the fault around it, or everything."""
    placed = [mark for mark in told if mark.ops]
    if not placed:
        return [0.0, to_ms(end_ns)]
    start, end = placed[0].start_ns, placed[0].end_ns
    for fault in faults:
        over = end_ns if fault.end_ns is None else fault.end_ns
        if fault.start_ns <= end and over >= start:
            start, end = min(start, fault.start_ns), max(end, min(over, end + (end - start)))
    margin = max((end - start) // 6, 1000)
    start, end = max(0, start - margin), min(end_ns, end + margin)
    return [0.0, to_ms(end_ns)] if end - start > 0.6 * end_ns else [to_ms(start), to_ms(end)]


def _details(intervals: Sequence[Interval], told: Sequence[Mark]) -> tuple[Block, str]:
    """What a tooltip says of an operation besides its columns: a block, and its names as squeezed
    JSON.

    With more operations than REPORT_DETAIL_OPS_MAX only those near anomalies are kept; ``place``
    names them then.
    """
    keep: Sequence[int] = range(len(intervals))
    if len(intervals) > REPORT_DETAIL_OPS_MAX:
        named = {id(op) for mark in told for op in mark.ops}
        near: set[int] = set()
        for place, op in enumerate(intervals):
            if id(op) in named:
                near.update(range(max(0, place - _NEAR), min(len(intervals), place + _NEAR + 1)))
        keep = sorted(near)
    names = {name: Names(1 << 30) for name in ("key", "error", "process", "hold")}
    key_of, error_of, process_of, hold_of = names.values()
    column: dict[str, list[int]] = {name: [] for name in (*names, "event", "answer")}
    keys, errors, processes, holds, events, answers = column.values()
    for place in keep:
        op = intervals[place]
        invoke, done = op.invoke, op.complete
        keys.append(key_of(invoke.key))
        errors.append(error_of(None if done is None else done.error))
        processes.append(process_of(invoke.process))
        holds.append(hold_of(op.field("hold")))
        events.append(invoke.index)
        # Counted from its invoke; 0 is "never answered".
        answers.append(0 if done is None else max(0, done.index - invoke.index))
    packed = {name: columns.words(values) for name, values in column.items()}
    packed["event"] = columns.delta(events)
    if len(keep) < len(intervals):
        packed["place"] = columns.delta(keep)
    tables = {name: table.table for name, table in names.items()}
    return columns.pack(packed), columns.squeeze(msgspec.json.encode(tables))


__all__ = ["STALE", "Timeline", "is_worker", "node_of", "short", "timeline", "to_ms"]
