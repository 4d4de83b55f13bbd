"""What is red on the timeline: anomalies as places, overlaps, stale writes.

    marks(report, history)            # one per listed anomaly: when, who, what it says
    overlaps_of(view, bars)           # two workers at once, in belief and in the service's view
    writes_of(view, bars, context)    # every write at the resource, stale ones marked

Harm comes first: ``worst`` orders anomalies by what they mean to somebody who uses the lock.

Trap: checkers list a bounded number of anomalies, so stale writes and overlaps are looked for here
again in the order that checkers/fencing.py and checkers/exclusion.py use; they judge, this paints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, LOCK_F
from checkers.view import View
from harness.core.history import History, Interval, Type
from harness.core.limits import REPORT_ANOMALIES_MAX, REPORT_OVERLAPS_MAX
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result, Side
from harness.report.document import RunReport
from harness.report.holds import Bar

_HARM = {Side.RESOURCE: 0, Side.SERVICE: 1, Side.CLIENT: 2, None: 3}
WRITE = "write"
ACCEPTED, REFUSED, STALE = 0, 1, 2


class Mark(msgspec.Struct, kw_only=True):
    """An anomaly with its place.  number: from 1, in the order of the report's table.

    It happened between ``start_ns`` and ``end_ns``; at the end it was done.
    """

    number: int
    result: Result
    anomaly: Anomaly
    start_ns: int
    end_ns: int
    ops: list[Interval]


class Overlap(msgspec.Struct, gc=False):
    """Two holds at once.  kind: "belief" or "lease"."""

    start_ns: int
    end_ns: int
    first: Bar
    second: Bar
    kind: str


class Write(msgspec.Struct, gc=False):
    """A write as the resource saw it, or as the history tells.  how: ACCEPTED, REFUSED, STALE."""

    time_ns: int
    process: int | str | None
    key: str | None
    hold: Any
    token: int | None
    how: int


def worst(results: Iterable[Result]) -> list[tuple[Result, Anomaly]]:
    """All listed anomalies, those that did harm first, else in the order of the checkers."""
    found = [(result, anomaly) for result in results for anomaly in result.anomalies]
    return sorted(found, key=lambda pair: _HARM[pair[1].side])


def marks(report: RunReport, history: History) -> list[Mark]:
    """Places of the anomalies, harm first; those without any known event have no place."""
    by_event: dict[int, Interval] = {}
    listed = worst(report.results)[:REPORT_ANOMALIES_MAX]
    wanted = {index for _, anomaly in listed for index in anomaly.ops}
    for op in history.intervals():
        for event in (op.invoke, op.complete):
            if event is not None and event.index in wanted:
                by_event[event.index] = op
    found = []
    for number, (result, anomaly) in enumerate(listed, 1):
        ops = list({id(by_event[i]): by_event[i] for i in anomaly.ops if i in by_event}.values())
        start_ns, end_ns = _when(anomaly, ops)
        found.append(
            Mark(
                number=number,
                result=result,
                anomaly=anomaly,
                start_ns=start_ns,
                end_ns=end_ns,
                ops=sorted(ops, key=lambda op: op.call_ns),
            )
        )
    return found


def _when(anomaly: Anomaly, ops: Sequence[Interval]) -> tuple[int, int]:
    """From the first to the last thing that proves it; two holders at once: while they overlap."""
    granted = [op.return_ns for op in ops if LOCK_F.get(op.invoke.f) == ACQUIRE]
    answered = [time_ns for time_ns in granted if time_ns is not None]
    if anomaly.side is not Side.RESOURCE and anomaly.overlap_ns and len(answered) > 1:
        return max(answered), max(answered) + anomaly.overlap_ns
    times = [op.call_ns for op in ops]
    times += [op.return_ns for op in ops if op.return_ns is not None]
    return min(times, default=0), max(times, default=0)


def overlaps_of(view: View, found: Sequence[Bar]) -> list[Overlap]:
    """Pairs of holds of one lock by different workers at one time, by time."""
    by_acquire = {(bar.process, bar.granted_ns, bar.key): bar for bar in found}
    pairs: list[Overlap] = []
    for key, windows in view.windows.items():
        for pair in view.sharing.overlaps(windows):
            first = by_acquire[pair.first.process, pair.first.start, key]
            second = by_acquire[pair.second.process, pair.second.start, key]
            end_ns = pair.start + pair.overlap_ns
            pairs.append(Overlap(pair.start, end_ns, first, second, "belief"))
    by_key: dict[str | None, list[Bar]] = {}
    for bar in found:
        if bar.lease_from_ns is not None:
            by_key.setdefault(bar.key, []).append(bar)
    for leased in by_key.values():
        if view.sharing.k == 1:
            pairs += _granted_twice(leased)
    pairs.sort(key=lambda pair: (pair.start_ns, pair.end_ns))
    return pairs[:REPORT_OVERLAPS_MAX]


def _granted_twice(leased: list[Bar]) -> list[Overlap]:
    found: list[Overlap] = []
    leased = sorted(leased, key=lambda bar: bar.lease_from_ns or 0)
    reach: Bar | None = None  # the hold that surely lasts longest so far
    alone: Bar | None = None  # the same of those that share with nobody
    for bar in leased:
        start, end = bar.lease_from_ns or 0, bar.lease_sure_ns or 0
        other = alone if bar.reads else reach
        if other is not None and start < (other.lease_sure_ns or 0) and start < end:
            found.append(Overlap(start, min(end, other.lease_sure_ns or 0), other, bar, "lease"))
        if reach is None or end > (reach.lease_sure_ns or 0):
            reach = bar
        if not bar.reads and (alone is None or end > (alone.lease_sure_ns or 0)):
            alone = bar
    return found[:REPORT_OVERLAPS_MAX]


def writes_of(view: View, found: Sequence[Bar], context: CheckContext) -> list[Write]:
    """Writes in order of arrival; accepted ones of a holder that came too late are STALE."""
    owners = {bar.hold: bar for bar in found if bar.hold is not None}
    if context.resource:
        records = sorted(context.resource, key=lambda record: record.seq)
        arrived = [
            Write(r.time, None, r.key, r.hold, r.token, ACCEPTED if r.accepted else REFUSED)
            for r in records
        ]
    else:
        arrived = _told(view)
    token: dict[str | None, int] = {}
    rank: dict[str | None, int] = {}
    for write in arrived:
        bar = owners.get(write.hold)
        if bar is not None and write.process is None:
            write.process = bar.process
        if write.how != ACCEPTED:
            continue
        mine = None if bar is None else bar.rank
        low = write.token is not None and write.token < token.get(write.key, write.token)
        late = mine is not None and mine < rank.get(write.key, mine)
        if low or late:
            write.how = STALE
        if write.token is not None:
            token[write.key] = max(write.token, token.get(write.key, write.token))
        if mine is not None:
            rank[write.key] = max(mine, rank.get(write.key, mine))
    return arrived


def _told(view: View) -> list[Write]:
    """Writes as the history has them, by the time of their answer."""
    arrived = []
    for op in view.history.intervals():
        if op.invoke.f == WRITE and op.return_ns is not None:
            how = ACCEPTED if op.outcome == Type.OK else REFUSED
            hold, token = op.field("hold"), op.field("token")
            token = token if isinstance(token, int) else None
            arrived.append(Write(op.return_ns, op.invoke.process, op.invoke.key, hold, token, how))
    return sorted(arrived, key=lambda write: write.time_ns)
