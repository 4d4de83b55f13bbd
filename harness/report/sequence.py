"""The smallest interleaving as a sequence diagram: geometry only, the template draws it as SVG.

    picture = sequence(told)          # a Story
    picture.lines, picture.rows       # lifelines and what happens, from top to bottom

Rows follow the order of the events, not their distances: a microsecond is as visible as a minute;
the time stands at the left of each row.  A message that is answered before anything else happens
is one row, else its answer has a row of its own, so that nothing seems to happen in between that
did not.
"""

from __future__ import annotations

import msgspec

from harness.report.story import Step, Story
from harness.report.text import milliseconds

TOP, LEFT, STEP, RIGHT = 64, 110, 46, 20
COLUMN = 190
CHARS = 7.0  # width of a letter of the diagram's font, roughly


class Lifeline(msgspec.Struct, kw_only=True):
    """A participant.  asleep: (y, height) where a fault had stopped or cut it off."""

    name: str
    kind: str  # worker | lock | resource
    x: float
    asleep: list[tuple[float, float]] = []


class Row(msgspec.Struct, kw_only=True):
    """What is drawn at one height.  x2 is where a message ends, None for a note."""

    y: float
    time: str
    x1: float
    x2: float | None = None
    text: str
    text_x: float
    width: float = 0.0
    dashed: bool = False
    red: bool = False
    fault: bool = False


class Sequence(msgspec.Struct, kw_only=True):
    """A diagram of ``width`` by ``height`` pixels."""

    width: float
    height: float
    lines: list[Lifeline]
    rows: list[Row]
    title: str


def sequence(told: Story) -> Sequence:
    """The diagram of a story; no rows if nothing is known of the operations."""
    events = _events(told.steps)
    lines = _lifelines(told.steps)
    x_of = {line.name: line.x for line in lines}
    width = LEFT + COLUMN * max(1, len(lines)) + RIGHT
    height_of: list[tuple[int, float]] = []
    rows = []
    for place, (time_ns, step, part) in enumerate(events):
        y = float(TOP + STEP * place + 30)
        height_of.append((time_ns, y))
        rows.append(_row(step, part, time_ns, y, x_of, width))
    height = TOP + STEP * len(rows) + 30
    for line in lines:
        line.asleep = [
            span
            for name, start, end in told.asleep
            if name == line.name and (span := _span(start, end, height_of, height)) is not None
        ]
    return Sequence(width=width, height=height, lines=lines, rows=rows, title=told.broke)


def _events(steps: list[Step]) -> list[tuple[int, Step, str]]:
    """(time, step, whole | call | reply | note), in order of time."""
    found: list[tuple[int, Step, str]] = []
    for step in steps:
        if step.kind == "note":
            found.append((step.time_ns, step, "note"))
            continue
        inside = [
            other
            for other in steps
            if other is not step and step.time_ns < other.time_ns <= (step.end_ns or step.time_ns)
        ]
        answered = [
            other
            for other in steps
            if other is not step
            and other.end_ns is not None
            and step.time_ns < other.end_ns < (step.end_ns or step.time_ns)
        ]
        if step.end_ns is not None and (inside or answered):
            found.append((step.time_ns, step, "call"))
            found.append((step.end_ns, step, "reply"))
        else:
            found.append((step.time_ns, step, "whole"))
    return sorted(found, key=lambda event: event[0])


def _lifelines(steps: list[Step]) -> list[Lifeline]:
    workers = dict.fromkeys(step.actor for step in steps if step.kind == "message")
    targets = dict.fromkeys(step.target for step in steps if step.kind == "message")
    locks = [name for name in targets if name.startswith("lock")]
    others = [name for name in targets if not name.startswith("lock")]
    # The service stands between the workers it arbitrates and the resource they use.
    order = [("worker", name) for name in sorted(workers)]
    order += [("lock", name) for name in locks] + [("resource", name) for name in others]
    return [
        Lifeline(name=name, kind=kind, x=LEFT + COLUMN * (place + 0.5))
        for place, (kind, name) in enumerate(order)
    ]


def _row(
    step: Step, part: str, time_ns: int, y: float, x_of: dict[str, float], width: float
) -> Row:
    time = milliseconds(time_ns)
    if part == "note":
        x = x_of.get(step.actor, (LEFT + width - RIGHT) / 2)
        wide = CHARS * len(step.text) + 20
        x = min(max(x, LEFT + wide / 2), width - wide / 2 - 4)
        return Row(
            y=y, time=time, x1=x - wide / 2, text=step.text, text_x=x, width=wide,
            fault=step.fault is not None,
        )  # fmt: skip
    here, there = x_of[step.actor], x_of[step.target]
    text = {"whole": f"{step.text} → {step.reply}", "call": step.text, "reply": step.reply}[part]
    if part == "reply":
        here, there = there, here
    sign = 1 if there > here else -1
    half = CHARS * len(text) / 2
    middle = min(max((here + there) / 2, LEFT + half), width - half - 4)
    return Row(
        y=y,
        time=time,
        x1=here + 5 * sign,
        x2=there - 5 * sign,
        text=text,
        text_x=middle,
        dashed=part == "reply",
        red=step.red and part != "call",
    )


def _span(
    start: int, end: int, height_of: list[tuple[int, float]], height: float
) -> tuple[float, float] | None:
    """Heights between which a fault lasted."""
    inside = [y for time_ns, y in height_of if start <= time_ns <= end]
    if not inside:
        return None
    after = any(time_ns > end for time_ns, _ in height_of)
    bottom = inside[-1] if after else height - 10
    return inside[0], max(8.0, bottom - inside[0])
