"""Operations as a picture of at most 100 columns: a row per process, time to the right.

    worker 0  [==A==]                    [==C==]
    worker 1            [=====B======]
              |      |  |            |   |     |
              0      2  3            5   7     8  ms

    A  acquire k0 by worker 0, hold a: 0 .. 2 ms, ok
    ...

A bar runs from invoke to completion; one that ends in ``...`` has no known outcome.  Columns follow
the order of the events, not their distances, so that a microsecond is as visible as a minute: read
the distances off the axis.  Operations marked with a small letter are context, not proof.

Trap: at one time, bars of a row may touch; ``)(`` is written as ``|``.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from harness.core.history import Interval, Type

COLUMNS = 100
LEGEND_MAX = 20


def ms(time_ns: int) -> str:
    """Nanoseconds as milliseconds, without needless zeros; small whole numbers stay ns."""
    text = f"{time_ns / 1e6:.6f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"


def unit(ops: Sequence[Interval]) -> str:
    """``ms``, or ``ns`` for histories that count in ticks."""
    return "ns" if max((_last(op) for op in ops), default=0) < 10_000 else "ms"


def show(time_ns: int, in_unit: str) -> str:
    return str(time_ns) if in_unit == "ns" else ms(time_ns)


def _last(op: Interval) -> int:
    return op.call_ns if op.return_ns is None else op.return_ns


def who(op: Interval) -> str:
    return f"worker {op.invoke.process}"


def names(ops: Sequence[Interval], context: Sequence[Interval]) -> list[str]:
    """A letter for each of ``ops``: small ones for those that are context."""
    letters: list[str] = []
    for place, op in enumerate(ops):
        letter = string.ascii_uppercase[place % 26]
        letters.append(letter.lower() if op in context else letter)
    return letters


def picture(ops: Sequence[Interval], *, context: Sequence[Interval] = ()) -> str:
    """The rows, the axis with its times, and a legend; no line is longer than COLUMNS."""
    ops = sorted(ops, key=lambda op: (op.call_ns, op.invoke.index))[:LEGEND_MAX]
    in_unit = unit(ops)
    times = sorted({op.call_ns for op in ops} | {_last(op) for op in ops})
    rows = sorted({op.invoke.process for op in ops}, key=str)
    label = max((len(f"worker {row}") for row in rows), default=0) + 2
    step = max(3, min(12, (COLUMNS - label - 14) // max(1, len(times) - 1)))
    column = {at: label + place * step for place, at in enumerate(times)}
    right = label + (len(times) - 1) * step + 5
    letters = names(ops, context)
    lines = []
    for row in rows:
        line = [" "] * (right + 1)
        line[: len(f"worker {row}")] = f"worker {row}"
        pairs = sorted(
            zip(ops, letters, strict=True), key=lambda pair: pair[0].return_ns is not None
        )
        for op, letter in pairs:  # those without an end first
            if op.invoke.process == row:
                _bar(line, op, letter, column, right)
        lines.append("".join(line).rstrip())
    lines += _axis(times, column, in_unit)
    lines.append("")
    lines += [describe(op, letter, in_unit) for op, letter in zip(ops, letters, strict=True)]
    return "\n".join(line[:COLUMNS] for line in lines)


def _bar(line: list[str], op: Interval, letter: str, column: dict[int, int], right: int) -> None:
    start = column[op.call_ns]
    open_end = op.return_ns is None
    end = right - 3 if open_end else column[_last(op)]
    for at in range(start, end + 1):
        line[at] = "="
    line[start] = "|" if line[start - 1] not in " =" else "["
    if open_end:
        line[end : right + 1] = "...."
    elif end > start:
        line[end] = "]"
    else:
        line[start] = "|"
    middle = (start + end) // 2
    spot = middle if end - start > 1 else start + 1
    if open_end:
        spot = start + 2  # later operations of the same process may be drawn over the rest
    if spot < len(line):
        line[spot] = letter


def _axis(times: list[int], column: dict[int, int], in_unit: str) -> list[str]:
    width = max(column.values()) + 12
    ticks, labels = [" "] * width, [" "] * (width + 24)
    free = 0
    for at in times:
        ticks[column[at]] = "|"
        text = show(at, in_unit)
        if column[at] >= free and column[at] + len(text) + 4 <= COLUMNS:
            labels[column[at] : column[at] + len(text)] = text
            free = column[at] + len(text) + 1
    return ["".join(ticks).rstrip(), "".join(labels).rstrip() + f"  {in_unit}"]


def describe(op: Interval, letter: str, in_unit: str) -> str:
    """One line about one operation."""
    return f"{letter}  {sentence(op, in_unit)}"


def sentence(op: Interval, in_unit: str) -> str:
    invoke = op.invoke
    words = [invoke.f]
    if invoke.key is not None:
        words.append(str(invoke.key))
    words.append(f"by {who(op)}")
    words += [f"{name} {found}" for name in ("hold", "owner", "token") if (found := op.field(name))]
    value = op.complete.value if op.complete is not None and invoke.f in ("read", "get") else None
    value = invoke.value if value is None else value
    if value is not None and not isinstance(value, dict):
        words.append(f"value {value}")
    end = "..." if op.return_ns is None else f".. {show(_last(op), in_unit)}"
    return f"{' '.join(words)}: {show(op.call_ns, in_unit)} {end} {in_unit}, {outcome(op)}"


def outcome(op: Interval) -> str:
    if op.outcome == Type.OK:
        return "ok"
    if op.outcome == Type.INFO:
        return "outcome unknown"
    said = op.complete.error if op.complete is not None else None
    return f"refused ({said or 'failed'})"
