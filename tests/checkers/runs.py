"""Small runs for the tests of run checkers: times in ms, workers as processes."""

from __future__ import annotations

from typing import Any

from harness.core.history import Header, History, Op
from harness.core.protocols import CheckContext, FaultWindow, ResourceRecord

MS = 1_000_000


class Run:
    """Builds a history line by line.

    run = Run(); run.op(0, "acquire", 0, 2, hold="a", token=1)
    """

    def __init__(self) -> None:
        self.events: list[tuple[float, int, dict[str, Any]]] = []

    def op(
        self,
        process: int,
        f: str,
        call: float,
        ret: float | None,
        *,
        kind: str = "ok",
        error: str | None = None,
        key: str = "k0",
        **value: Any,
    ) -> Run:
        base = {"process": process, "f": f, "key": key, "value": value}
        number = len(self.events)
        self.events.append((call, number, {**base, "type": "invoke"}))
        if ret is not None:
            self.events.append((ret, number + 1, {**base, "type": kind, "error": error}))
        return self

    def event(self, source: int | str, f: str, at: float, **value: Any) -> Run:
        fields = {"process": source, "f": f, "key": "k0", "type": "info", "value": value}
        self.events.append((at, len(self.events), fields))
        return self

    def history(self, **header: Any) -> History:
        ordered = sorted(self.events, key=lambda event: event[:2])
        ops = [Op(i, round(at * MS), **fields) for i, (at, _, fields) in enumerate(ordered)]
        return History(ops, Header(**header))


def context(**fields: Any) -> CheckContext:
    """A context with durations in ms where the name says so."""
    if "ttl_ms" in fields:
        fields["ttl_ns"] = fields.pop("ttl_ms") * MS
    return CheckContext(**{"workers": 4, **fields})


def fault(kind: str, target: str, start: float, end: float | None, **fields: Any) -> FaultWindow:
    end_ns = None if end is None else round(end * MS)
    known = {"id": 1, "bit": True, "healed": end is not None, **fields}
    return FaultWindow(
        kind=kind, targets=[target], start_ns=round(start * MS), end_ns=end_ns, **known
    )


def record(seq: int, at: float, hold: str, value: Any, **fields: Any) -> ResourceRecord:
    known = {"key": "r0", "accepted": True, **fields}
    return ResourceRecord(seq=seq, time=round(at * MS), hold=hold, value=value, **known)


def holder_pause(*, accepted: bool) -> tuple[Run, list[ResourceRecord]]:
    """The classic: w0 is paused past its TTL of 10 ms, w1 takes over and writes, w0 writes late."""
    kind, error = ("ok", None) if accepted else ("fail", "stale")
    run = Run()
    run.op(0, "acquire", 0, 2, hold="a", token=1)
    run.op(1, "acquire", 11, 12, hold="b", token=2)
    run.op(1, "write", 14, 15, key="r0", hold="b", token=2, value=2)
    run.op(0, "write", 21, 21.5, key="r0", hold="a", token=1, value=1, kind=kind, error=error)
    run.op(0, "release", 22, 23, hold="a", kind="fail", error="not-held")
    run.op(1, "release", 24, 25, hold="b")
    log = [
        record(1, 14.5, "b", 2, token=2),
        record(2, 21.2, "a", 1, token=1, accepted=accepted, why="" if accepted else "stale"),
    ]
    return run, log
