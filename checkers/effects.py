"""effects: was an update lost, or a job done twice?  A mutex checker alone passes both.

    lost-update     a section read u and wrote v, but somebody else's write came in between
    double-effect   one tick (``value.tick``) or one write took effect twice
    unrepeatable-read   a section that only reads, under one hold, saw the value change

Each critical section (the operations of one hold) that reads before it writes is one
read-modify-write: in the resource's log, the value just before its first accepted write must be the
one it read, and its writes must follow each other.  Without a log, every section is one CAS(read ->
written value) and the monitor for unique values judges the register (``monitors.cas``).  This finds
"released before commit" (K15) and "work repeated after a wait" (K25), where holds never overlap.

Traps.  Values must be unique, or sections cannot be told apart.  A section whose read or write has
an unknown outcome counts only as far as the log proves it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkers.monitors import cas
from checkers.monitors.span import Span, Verdict, at_key, by_key, ms
from harness.core.history import History, Interval, Op, Type
from harness.core.limits import ANOMALIES_MAX
from harness.core.protocols import CheckContext, ResourceRecord
from harness.core.result import Anomaly, Result, Side, Valid

READ, WRITE = "read", "write"


class Section(msgspec.Struct, gc=False):
    """What one hold did at one resource: its reads and writes, in order."""

    hold: Any
    key: str | None
    reads: list[Span]
    writes: list[Span]

    @property
    def who(self) -> str:
        return (self.reads or self.writes)[0].who

    @property
    def first_read(self) -> Span | None:
        """The read that its first write is based on."""
        good = [span for span in self.reads if span.ok]
        if self.writes:
            good = [span for span in good if span.ret <= self.writes[0].call]
        return good[-1] if good else None

    @property
    def versions(self) -> list[tuple[Any, Span]]:
        """What it read, each time."""
        return [(span.value.get("version"), span) for span in self.reads if span.ok]


class Effects:
    """Lost updates and double effects at the resource."""

    name = "effects"
    safety = True

    def check(self, history: History, context: CheckContext) -> Result:
        found = sections(history)
        updates = [s for s in found if s.first_read is not None and s.writes]
        ticks = sum(1 for s in found for w in s.writes if w.value.get("tick") is not None)
        stats: dict[str, Any] = {
            "exact": True,
            "why": "log of the resource" if context.resource else "writes of the history",
            "sections": len(found),
            "updates": len(updates),
            "ticks": ticks,
        }
        readers = [s for s in found if not s.writes and len(s.versions) > 1]
        stats["readers"] = len(readers)
        if not updates and not ticks and not readers:
            return Result(
                checker=self.name,
                valid=Valid.UNKNOWN,
                says="no section read before it wrote or read twice, and no write names a tick, so "
                "neither a lost update nor a double effect could show",
                stats={**stats, "applies": False},
            )
        verdict = Verdict(model="effects")
        _ticks(found, context, verdict)
        for section in readers:
            _judge_reader(section, verdict)
        if context.resource:
            _by_log(context.resource, found, verdict)
        else:
            _by_register(updates, context.initial, verdict)
        stats["violations"] = verdict.count
        if not verdict.exact:
            stats["exact"], stats["why"] = False, verdict.why
        says = verdict.says
        if verdict.valid is Valid.TRUE:
            says = f"{len(updates)} updates and {ticks} ticks, none lost, none done twice"
            if readers:
                says += f"; {len(readers)} readers saw nothing change"
        return Result(
            checker=self.name,
            valid=verdict.valid,
            says=says,
            anomalies=verdict.anomalies[:ANOMALIES_MAX],
            stats=stats,
        )


def sections(history: History) -> list[Section]:
    """The sections of a history, by hold id (else process) and resource."""
    spans = by_key(history.intervals(), {READ: READ, WRITE: WRITE})
    found: dict[Any, Section] = {}
    for key, ops in spans.items():
        for span in ops:
            whose = (key, span.process if span.hold is None else ("hold", span.hold))
            section = found.setdefault(whose, Section(span.hold, key, [], []))
            (section.reads if span.f == READ else section.writes).append(span)
    return list(found.values())


def _judge_reader(section: Section, verdict: Verdict) -> None:
    """Under one hold the first and each later read must be the same."""
    (version, first), *later = section.versions
    for other, span in later:
        if other != version:
            verdict.add(
                _anomaly(
                    "unrepeatable-read",
                    section.key,
                    f"{section.who} read version {version} at {ms(first.ret)} and version {other} "
                    f"at {ms(span.ret)}, under one hold: somebody wrote meanwhile",
                    [first.event, span.event],
                    "the writer had been kept out, or the reader had stopped before",
                )
            )
            return


def _ticks(found: list[Section], context: CheckContext, verdict: Verdict) -> None:
    """One effect per tick: accepted by the log, else answered ok."""
    accepted: set[tuple[Any, str]] | None = None
    if context.resource:
        accepted = {(r.hold, repr(r.value)) for r in context.resource if r.accepted}
    first: dict[tuple[str | None, str], Span] = {}
    for section in found:
        for span in section.writes:
            tick = span.value.get("tick")
            done = (
                span.ok
                if accepted is None
                else (span.hold, repr(span.value.get("value"))) in accepted
            )
            if tick is None or not done:
                continue
            other = first.setdefault((section.key, repr(tick)), span)
            if other is not span:
                verdict.add(
                    _anomaly(
                        "double-effect",
                        section.key,
                        f"{other.who} (by {ms(other.ret)}) and {span.who} (by {ms(span.ret)}) both "
                        f"did the work of tick {tick!r}",
                        [other.event, span.event],
                        "the second had found the tick done and left it alone",
                    )
                )


def _by_log(log: list[ResourceRecord], found: list[Section], verdict: Verdict) -> None:
    """Walks the accepted writes of each resource in their order of arrival."""
    by_hold = {(section.key, section.hold): section for section in found}
    last: dict[str, ResourceRecord] = {}
    done: dict[tuple[str, Any, str], ResourceRecord] = {}
    for record in sorted(log, key=lambda record: record.seq):
        if not record.accepted:
            continue
        section = by_hold.get((record.key, record.hold))
        before = last.get(record.key)
        last[record.key] = record
        if section is None or record.hold is None:
            continue
        again = done.setdefault((record.key, record.hold, repr(record.value)), record)
        if again is not record:
            verdict.add(_twice(section, record))
        if before is not None and before.hold != record.hold:
            _judge_update(section, before, record, by_hold, verdict, done)


def _judge_update(
    section: Section,
    before: ResourceRecord,
    record: ResourceRecord,
    by_hold: dict[tuple[str | None, Any], Section],
    verdict: Verdict,
    done: dict[tuple[str, Any, str], ResourceRecord],
) -> None:
    """``record`` follows a write of another hold: was that the value its section had read?"""
    read = section.first_read
    mine = sum(1 for key, hold, _ in done if key == record.key and hold == record.hold)
    if mine > 1:
        what = "wrote between two writes of"
    elif read is None or _value(read) == before.value:
        return
    else:
        what = "wrote after the read of"
    other = by_hold.get((before.key, before.hold))
    ops = [] if read is None else [read.event]
    ops += _events(other, before.value) + _events(section, record.value)
    verdict.add(
        _anomaly(
            "lost-update",
            record.key,
            f"{'another client' if other is None else other.who} {what} {section.who} "
            f"(at {ms(before.time)}), and {section.who} wrote over it at {ms(record.time)} without "
            "having seen it",
            ops,
            f"{section.who} had read the value again, or its write had been refused",
        )
    )


def _twice(section: Section, record: ResourceRecord) -> Anomaly:
    return _anomaly(
        "double-effect",
        record.key,
        f"one write of {section.who} was accepted twice, again at {ms(record.time)}",
        _events(section, record.value),
        "the resource had known the write from the first time",
    )


def _value(span: Span) -> Any:
    return span.value.get("value")


def _events(section: Section | None, value: Any) -> list[int]:
    if section is None:
        return []
    return [span.event for span in section.writes if _value(span) == value][:1]


def _by_register(updates: list[Section], initial: Any, verdict: Verdict) -> None:
    """Each section as one CAS from the value read to the value written last."""
    ops: list[Interval] = []
    for section in updates:
        read, last = section.first_read, section.writes[-1]
        if read is None:
            continue
        certain = all(span.ok for span in section.writes)
        pair = [_value(read), _value(last)]
        invoke = Op(read.event, read.call, read.process, Type.INVOKE, "cas", section.key, pair)
        if certain:
            done = Op(last.event, last.ret, read.process, Type.OK, "cas", section.key, pair)
            ops.append(Interval(invoke, done))
        elif any(span.seen is None for span in section.writes):
            ops.append(Interval(invoke, None))
    starts: dict[str | None, Any] = {}
    for op in sorted(ops, key=lambda op: op.call_ns):
        starts.setdefault(op.invoke.key, op.invoke.value[0])
    for key, start in starts.items():
        mine = [op for op in ops if op.invoke.key == key]
        part = cas.check(mine, initial=initial if initial is not None else start)
        if not part.exact:
            verdict.doubt(part.why, key)
        for anomaly in part.anomalies:
            kind = "lost-update" if anomaly.kind == "replaced-twice" else anomaly.kind
            verdict.add(
                _anomaly(
                    kind,
                    key,
                    anomaly.says.removeprefix(at_key(key)),
                    anomaly.ops,
                    "every section had read the value that the one before it wrote",
                )
            )
    if verdict.valid is Valid.TRUE and not verdict.exact:
        verdict.valid = Valid.UNKNOWN


def _anomaly(kind: str, key: str | None, says: str, ops: list[int], legal_if: str) -> Anomaly:
    return Anomaly(
        kind=kind,
        side=Side.RESOURCE,
        ops=list(dict.fromkeys(ops)),
        says=at_key(key) + says,
        key=key,
        legal_if=legal_if,
    )
