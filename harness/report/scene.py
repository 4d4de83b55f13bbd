"""Who takes part in an anomaly: holds, writes, faults, and what they are called.

    scene = scene_of(mark, timeline, report)
    names = Names(timeline)
    names(6), names.told("process 6 wrote")     # ("w2", "w2 (process 6) wrote")

Trap: a worker may have several process numbers; both are told where they differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from checkers.models.base import LOCK_F, hold_of
from harness.core.history import Interval
from harness.core.protocols import FaultWindow
from harness.core.result import Side
from harness.report.document import RunReport
from harness.report.escape import safe
from harness.report.holds import Bar
from harness.report.marks import STALE, Mark, Write
from harness.report.timeline import Timeline

_PROCESS = re.compile(r"\bprocess (\d+)\b")


class Scene(msgspec.Struct, kw_only=True):
    """Who takes part in an anomaly.  late: the hold that was over; later: who held after it."""

    late: Bar | None
    later: Bar | None
    holds: list[Bar]
    stale: Write | None
    before: Write | None
    faults: list[FaultWindow]


class Names:
    """Processes as the rows of the timeline call them."""

    def __init__(self, data: Timeline) -> None:
        self._view = data.view

    def told(self, text: str) -> str:
        """Words of a checker, which knows processes only: each is called by its worker."""

        def name(found: re.Match[str]) -> str:
            process = int(found[1])
            worker = self._view.worker(process)
            if worker is None:
                return found[0]
            return f"w{worker}" if worker == process else f"w{worker} (process {process})"

        return _PROCESS.sub(name, text)

    def __call__(self, process: int | str | None) -> str:
        if process is None:
            return "somebody"
        worker = self._view.worker(process)
        return safe(process) if worker is None else f"w{worker}"


def scene_of(mark: Mark, data: Timeline, report: RunReport) -> Scene:
    """Finds the holds, writes and faults of an anomaly."""
    wanted = [hold for op in mark.ops if (hold := hold_of(op)) is not None]
    holds = [bar for bar in data.bars if bar.hold is not None and bar.hold in wanted]
    stale = before = None
    late = holds[0] if holds else None
    if mark.anomaly.side is Side.RESOURCE and wanted:
        hold = hold_of(max(mark.ops, key=lambda op: op.call_ns if _writes(op) else -1))
        of_hold = [w for w in data.writes if w.hold == hold and w.how == STALE]
        stale = of_hold[-1] if of_hold else None
        late = next((bar for bar in holds if bar.hold == hold), late)
        before = _written_before(stale, data.writes)
    moment = mark.end_ns if stale is None else stale.time_ns
    if mark.anomaly.side is Side.SERVICE:
        late, later = _at_once(holds) or (late, None)
    else:
        others = [bar for bar in holds if bar is not late and bar.granted_ns <= moment]
        later = max(others, key=lambda bar: bar.granted_ns, default=None)
    start = min([bar.granted_ns for bar in holds] or [mark.start_ns])
    under_way = [
        fault
        for fault in report.faults
        if fault.start_ns <= moment and (fault.end_ns is None or fault.end_ns >= start)
    ]
    return Scene(late=late, later=later, holds=holds, stale=stale, before=before, faults=under_way)


def _at_once(holds: Sequence[Bar]) -> tuple[Bar, Bar] | None:
    """The first two of the holds that the service granted at one time, if there are two."""
    for place, second in enumerate(holds):
        for first in holds[:place]:
            if first.lease_sure_ns is not None and second.granted_ns < first.lease_sure_ns:
                return first, second
    return None


def _writes(op: Interval) -> bool:
    return op.invoke.f not in LOCK_F


def _written_before(stale: Write | None, writes: Sequence[Write]) -> Write | None:
    """The accepted write of another hold that came last before the stale one."""
    if stale is None:
        return None
    found = [
        write
        for write in writes
        if write.key == stale.key
        and write.hold != stale.hold
        and write.how != 1
        and write.time_ns < stale.time_ns
    ]
    return found[-1] if found else None
