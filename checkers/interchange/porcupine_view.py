"""Visualization data in the form that Porcupine's viewer draws (its ``index.html`` and ours).

    {"Partitions": [{"History": [{"ClientId", "Start", "OriginalStart", "End", "OriginalEnd",
                                  "Description", "Metadata"}],
                     "PartialLinearizations": [[{"Index", "StateDescription"}]],
                     "Largest": {index: which partial linearization}}],
     "Annotations": [{"ClientId", "Tag", "Start", "End", "Description", "Details", ...}]}

One partition per key.  Start and End are ranks times 100: JavaScript cannot hold ns exactly and
the viewer shifts ticks by a few; the times themselves are text in OriginalStart and OriginalEnd.
An operation of unknown outcome runs to the end of the history and says so.  Events of the nemesis
become annotations, and so do anomalies, in a row of their own.

Traps: refused operations (``fail``) are left out, as in Porcupine's own logs: they did not happen;
but for refusals that observed the state (*not-held*), which may be what proves a violation.
The viewer puts metadata and states into its tooltip as HTML, so those two are escaped here.  It
draws every operation as SVG, so more than a few thousand make it crawl.

Source of the format: Porcupine 1.3 (visualization.go), written anew.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkers.interchange.files import open_write
from harness.core.history import OBSERVATIONS, History, Interval, Op, Type
from harness.core.result import Anomaly

# Steps of a partial linearization: (position in history.intervals(), state in words).
Steps = Sequence[tuple[int, str]]

_RANK = 100
_NEMESIS_COLOUR, _ANOMALY_COLOUR = "#E9DCA0", "#FF8A80"


def porcupine_data(
    history: History,
    *,
    linearizations: Mapping[str | None, Iterable[Steps]] | None = None,
    anomalies: Iterable[Anomaly] = (),
) -> dict[str, Any]:
    """The document.  ``linearizations``: per key, orders of operations that are legal so far."""
    intervals = history.intervals()
    clients = _client_ids(intervals)
    by_key: dict[str | None, list[int]] = {}
    for position, interval in enumerate(intervals):
        if interval.outcome != Type.FAIL or _observed(interval):
            by_key.setdefault(interval.invoke.key, []).append(position)
    notes = [*_nemesis_notes(history), *_anomaly_notes(history, anomalies)]
    rank = _ranks(history, [time for note in notes for time in (note["Start"], note["End"])])
    partitions = [
        _partition(
            [(position, intervals[position]) for position in positions],
            list((linearizations or {}).get(key, ())),
            clients=clients,
            rank=rank,
            end_ns=history.end_ns,
        )
        for key, positions in by_key.items()
    ]
    for note in notes:
        note["Start"], note["End"] = rank[note["Start"]], rank[note["End"]]
    return {"Partitions": partitions, "Annotations": notes}


def write_porcupine(
    history: History,
    path: Path,
    *,
    linearizations: Mapping[str | None, Iterable[Steps]] | None = None,
    anomalies: Iterable[Anomaly] = (),
) -> None:
    """Writes ``porcupine_data`` as JSON (packed if ``path`` ends in .gz)."""
    data = porcupine_data(history, linearizations=linearizations, anomalies=anomalies)
    with open_write(path) as file:
        file.write(msgspec.json.encode(data))


def _client_ids(intervals: Iterable[Interval]) -> dict[int | str, int]:
    """Small numbers for the viewer's rows: the process where it is one, else the next free."""
    names = {interval.invoke.process for interval in intervals}
    numbers: dict[int | str, int] = {name: name for name in names if isinstance(name, int)}
    free = max(numbers.values(), default=-1) + 1
    texts = sorted(str(name) for name in names if not isinstance(name, int))
    return {**numbers, **{text: free + place for place, text in enumerate(texts)}}


def _ranks(history: History, times: Iterable[int]) -> dict[int, int]:
    found = sorted({op.time for op in history.ops} | set(times))
    return {time: place * _RANK for place, time in enumerate(found)}


def _partition(
    operations: list[tuple[int, Interval]],
    linearizations: list[Steps],
    *,
    clients: Mapping[int | str, int],
    rank: Mapping[int, int],
    end_ns: int,
) -> dict[str, Any]:
    local = {position: place for place, (position, _) in enumerate(operations)}
    elements = []
    for _, interval in operations:
        open_end = interval.return_ns is None
        stop_ns = end_ns if interval.return_ns is None else interval.return_ns
        elements.append(
            {
                "ClientId": clients[interval.invoke.process],
                "Start": rank[interval.call_ns],
                "OriginalStart": str(interval.call_ns),
                "End": rank[stop_ns],
                "OriginalEnd": "unknown" if open_end else str(stop_ns),
                "Description": describe(interval),
                "Metadata": _metadata(interval),
            }
        )
    ordered = sorted(linearizations, key=len, reverse=True)
    largest: dict[str, int] = {}
    partials = []
    for place, steps in enumerate(ordered):
        partials.append(
            [
                {"Index": local[position], "StateDescription": html.escape(state)}
                for position, state in steps
                if position in local
            ]
        )
        for position, _ in steps:
            if position in local:
                largest.setdefault(str(local[position]), place)
    return {"History": elements, "PartialLinearizations": partials, "Largest": largest}


def describe(interval: Interval) -> str:
    """An operation in a few words: ``acquire('k') -> token 7``, ``release('k') -> unknown``."""
    invoke = interval.invoke
    key = "" if invoke.key is None else repr(invoke.key)
    asked = _words(invoke.value, leave_out=("hold", "owner", "token", "ttl_ns"))
    call = f"{invoke.f}({', '.join(part for part in (key, asked) if part)})"
    if interval.outcome == Type.INFO:
        return f"{call} -> unknown"
    if interval.outcome == Type.FAIL:
        return f"{call} -> refused ({_observed(interval) or 'failed'})"
    token = interval.field("token")
    if token is not None:
        return f"{call} -> token {token}"
    complete = interval.complete
    if complete is not None and complete.value != invoke.value:
        return f"{call} -> {_words(complete.value, leave_out=('hold', 'owner')) or 'ok'}"
    return f"{call} -> ok"


def _observed(interval: Interval) -> str | None:
    error = None if interval.complete is None else interval.complete.error
    return error if error in OBSERVATIONS else None


def _words(value: Any, *, leave_out: tuple[str, ...]) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        shown = {name: item for name, item in value.items() if name not in leave_out}
        return ", ".join(f"{name}={item!r}" for name, item in shown.items())
    return repr(value)


def _metadata(interval: Interval) -> str:
    """What the tooltip says: the indices of the events, owner and hold."""
    parts = [f"invoke {interval.invoke.index}"]
    if interval.complete is not None:
        parts.append(f"{interval.complete.type} {interval.complete.index}")
    parts += [
        f"{name} {interval.field(name)}"
        for name in ("owner", "hold")
        if interval.field(name) is not None
    ]
    return html.escape(", ".join(parts))


def _note(tag: str, start_ns: int, end_ns: int, text: str, details: str, colour: str) -> Any:
    return {
        "ClientId": 0,
        "Tag": tag,
        "Start": start_ns,
        "End": max(start_ns, end_ns),
        "Description": text,
        "Details": details,
        "Annotation": True,
        "TextColor": "#000000",
        "BackgroundColor": colour,
    }


def _nemesis_notes(history: History) -> list[dict[str, Any]]:
    return [
        _note("nemesis", op.time, op.time, op.f, _details(op), _NEMESIS_COLOUR)
        for op in history.nemesis()
    ]


def _details(op: Op) -> str:
    return "" if op.value is None else msgspec.json.encode(op.value).decode()


def _anomaly_notes(history: History, anomalies: Iterable[Anomaly]) -> list[dict[str, Any]]:
    found = list(anomalies)
    wanted = {index for anomaly in found for index in anomaly.ops}
    times = {op.index: op.time for op in history.ops if op.index in wanted}
    notes = []
    for anomaly in found:
        at = [times[index] for index in anomaly.ops if index in times]
        if at:
            notes.append(
                _note("anomaly", min(at), max(at), anomaly.kind, anomaly.says, _ANOMALY_COLOUR)
            )
    return notes
