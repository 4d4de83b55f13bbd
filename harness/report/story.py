"""An anomaly as a person would tell it: what broke, four answers, and the messages in order.

    told = story(mark, timeline, report)
    told.broke      # one sentence
    told.answers    # [("Who held the lock?", "..."), ...]
    told.steps      # for sequence.py

The four questions are those that everybody asks: who held the lock, when did its lease end, which
write was stale, which fault caused it.  Nothing is concluded here that no checker found: a fault is
said to be *under way*, since that is what was recorded.

Trap: imported histories may name no holds; then the checker's own sentence is all there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from checkers.models.base import LOCK_F, RELEASE, hold_of
from harness.core.history import Interval, Type
from harness.core.protocols import FaultWindow
from harness.core.result import Side
from harness.report.document import RunReport
from harness.report.escape import safe
from harness.report.holds import Bar
from harness.report.marks import STALE, Mark, Write
from harness.report.scene import Names, Scene, scene_of
from harness.report.text import milliseconds
from harness.report.timeline import Timeline, is_worker

_OPS_MAX = 8
_FAULTS_MAX = 3


class Step(msgspec.Struct, kw_only=True):
    """One line of the sequence.  kind: message | note.  red: what must not have been.

    A message goes from ``actor`` to ``target`` (names of lifelines); a note stands at ``actor``, or
    at nobody's (a fault of a server).  end_ns: when it was answered, None if it never was.
    """

    time_ns: int
    end_ns: int | None
    kind: str
    actor: str
    target: str = ""
    text: str
    reply: str = ""
    red: bool = False
    fault: int | None = None


class Story(msgspec.Struct, kw_only=True):
    """What happened."""

    mark: Mark
    broke: str
    answers: list[tuple[str, str]]
    legal_if: str = ""
    steps: list[Step]
    asleep: list[tuple[str, int, int]] = []  # lifeline, from, to: a fault that hit this worker


def story(mark: Mark, data: Timeline, report: RunReport) -> Story:
    """Tells one anomaly."""
    scene = scene_of(mark, data, report)
    names = Names(data)
    faults = _faults_line(scene, names)
    return Story(
        mark=mark,
        broke=_broke(mark, scene, names),
        answers=[
            ("Who held the lock?", _holder(mark, scene, names)),
            ("When did the lease end?", _lease(scene, names, data)),
            ("Which write was stale?", _stale(scene, names, data)),
            ("Which fault was under way?", faults),
        ],
        legal_if=names.told(safe(mark.anomaly.legal_if or "")),
        steps=_steps(mark, data, scene, names),
        asleep=[
            (target, fault.start_ns, data.view.history.end_ns if fault.end_ns is None
             else fault.end_ns)
            for fault in scene.faults for target in fault.targets if is_worker(target)
        ],
    )  # fmt: skip


def _broke(mark: Mark, scene: Scene, names: Names) -> str:
    anomaly, late, later = mark.anomaly, scene.late, scene.later
    if late is None:
        return names.told(safe(anomaly.says))
    who, lock = names(late.process), _lock(late)
    if later is not None and later.process != late.process and names(later.process) == who:
        # One worker under two numbers: it went on after an unknown outcome, its hold did too.
        who = f"{who} (process {late.process})"
    if scene.stale is not None:
        over = _over(late, scene.stale.time_ns)
        then = f", after {names(later.process)} had been granted it" if later is not None else ""
        return (
            f"{who} wrote to {safe(scene.stale.key or 'the resource')} at "
            f"{milliseconds(scene.stale.time_ns)} with a hold on {lock} that was over{over}{then}: "
            "the write was accepted."
        )
    if later is not None and anomaly.side is Side.SERVICE:
        return (
            f"The service granted {lock} to {names(later.process)} at "
            f"{milliseconds(later.granted_ns)} while {who}, who had got it at "
            f"{milliseconds(late.granted_ns)}, still held it: two holders at once."
        )
    if later is not None and anomaly.overlap_ns is not None:
        return (
            f"{who} and {names(later.process)} both believed to hold {lock} for "
            f"{milliseconds(anomaly.overlap_ns)}, from {milliseconds(later.granted_ns)} on."
        )
    return names.told(safe(anomaly.says))


def _over(late: Bar, time_ns: int) -> str:
    if late.lease_last_ns is None or late.lease_last_ns >= time_ns:
        return ""
    return f" since {milliseconds(late.lease_last_ns)}"


def _lock(bar: Bar) -> str:
    return "the lock" if bar.key is None else safe(bar.key)


def _bar(bar: Bar, names: Names) -> str:
    token = "" if bar.token is None else f", token {bar.token}"
    return f"{names(bar.process)} (hold {safe(bar.hold)}{token})"


def _holder(mark: Mark, scene: Scene, names: Names) -> str:
    if scene.late is None:
        return "The history names no holds; see the operations below."
    late, later = scene.late, scene.later
    first = f"{_bar(late, names)} was granted {_lock(late)} at {milliseconds(late.granted_ns)}"
    if later is None:
        others = [_bar(bar, names) for bar in scene.holds if bar is not late]
        return f"{first}; also part of it: {', '.join(others)}." if others else f"{first}."
    then = f"{_bar(later, names)} at {milliseconds(later.granted_ns)}"
    if mark.anomaly.side is Side.SERVICE:
        return f"Both: {first}, and {then}."
    over = late.lease_last_ns
    if over is not None and over <= later.granted_ns:
        return f"{first}, which was over by {milliseconds(over)}; it went to {then}."
    return f"{first}, and {then}, before {names(late.process)} had given it back."


def _lease(scene: Scene, names: Names, data: Timeline) -> str:
    late = scene.late
    if late is None or late.lease_sure_ns is None:
        return "Nothing is known of a lease."
    who = names(late.process)
    if late.lease_last_ns is None and data.view.bound:
        kind = data.view.context.lease_kind
        return f"There is none: {who}'s lock lived as long as its {kind}, whose end nobody told."
    if late.lease_last_ns is None:
        return f"{who}'s hold had no end known to the service before the end of the run."
    sure, last = milliseconds(late.lease_sure_ns), milliseconds(late.lease_last_ns)
    text = f"{who}'s hold ended at the service between {sure} and {last}"
    if late.believed_ns is not None and late.believed_ns > late.lease_last_ns:
        longer = milliseconds(late.believed_ns - late.lease_last_ns)
        return f"{text}; {who} went on believing for {longer} more."
    if late.believed_ns is not None:
        return f"{text}; {who} believed until {milliseconds(late.believed_ns)}."
    return f"{text}."


def _stale(scene: Scene, names: Names, data: Timeline) -> str:
    holds = {bar.hold for bar in scene.holds}
    mine = (write for write in data.writes if write.how == STALE and write.hold in holds)
    stale = scene.stale or next(mine, None)
    if stale is not None:
        token = " without a token" if stale.token is None else f" with token {stale.token}"
        text = (
            f"The write of {names(stale.process)} to {safe(stale.key)} (hold {safe(stale.hold)})"
            f"{token}, accepted at {milliseconds(stale.time_ns)}"
        )
        if scene.before is not None:
            before = scene.before
            text += f", after {names(before.process)}'s at {milliseconds(before.time_ns)}"
        return text + "."
    if not data.writes:
        return "Nobody wrote to a protected resource."
    late = sum(write.how == STALE for write in data.writes)
    refused = sum(write.how == 1 for write in data.writes)
    if late:
        return f"None in this one; {late} elsewhere in the run."
    if refused:
        return f"None was accepted; the resource refused {refused}."
    over = _overtaken(scene, data)
    if over is not None and scene.later is not None:
        later = names(scene.later.process)
        return (
            f"None: {names(over.process)} wrote at {milliseconds(over.time_ns)}, when {later} had "
            f"been granted the lock, too, but had written nothing yet that could be damaged."
        )
    return "None: no write of a former holder was accepted."


def _overtaken(scene: Scene, data: Timeline) -> Write | None:
    """The first write of a holder after another was granted the lock."""
    late, later = scene.late, scene.later
    if late is None or later is None:
        return None
    return next(
        (w for w in data.writes if w.hold == late.hold and w.time_ns > later.granted_ns), None
    )


def _faults_line(scene: Scene, names: Names) -> str:
    if not scene.faults:
        return "None: no fault was under way."
    hit = {names(bar.process) for bar in scene.holds}
    ordered = sorted(scene.faults, key=lambda fault: not _touches(fault, hit))
    return "; ".join(_fault(fault) for fault in ordered[:_FAULTS_MAX]) + "."


def _touches(fault: FaultWindow, workers: Iterable[str]) -> bool:
    return any(target.partition("-")[0] in workers for target in fault.targets)


def _fault(fault: FaultWindow) -> str:
    # It is seen to be over only after it is: a paused client may act before.
    end = ", never healed" if fault.end_ns is None else f", healed by {milliseconds(fault.end_ns)}"
    aim = f" (aimed: {safe(fault.when)})" if fault.when else ""
    proof = "" if fault.bit else ", without evidence that it bit"
    targets = safe(", ".join(fault.targets)) or "nobody"
    return (
        f"#{fault.id} {safe(fault.kind)} on {targets}{aim}, from {milliseconds(fault.start_ns)}"
        f"{end}{proof}"
    )


def _steps(mark: Mark, data: Timeline, scene: Scene, names: Names) -> list[Step]:
    proof = {id(op) for op in mark.ops}
    wanted = {hold for op in mark.ops if (hold := hold_of(op)) is not None}
    near = [
        op
        for op in data.view.history.intervals()
        if id(op) in proof or (hold_of(op) in wanted and wanted)
    ]
    if len(near) > _OPS_MAX:
        near = [op for op in near if id(op) in proof or op.invoke.f in LOCK_F][:_OPS_MAX]
    stale = [write for write in data.writes if write.how == STALE and write.hold in wanted]
    steps = [_message(op, names, stale) for op in near]
    begin = min((step.time_ns for step in steps), default=0)
    end = max((step.end_ns or step.time_ns for step in steps), default=0)
    for fault in scene.faults[:_FAULTS_MAX]:
        steps += _fault_notes(fault, begin, end)
    late = scene.late
    if late is not None and late.lease_last_ns is not None and late.lease_last_ns < end:
        released = any(
            LOCK_F.get(op.invoke.f) == RELEASE and op.outcome == Type.OK and hold_of(op) ==
            late.hold for op in near
        )  # fmt: skip
        if not released:
            steps.append(
                Step(
                    time_ns=late.lease_last_ns,
                    end_ns=late.lease_last_ns,
                    kind="note",
                    actor=_lock_line(late.key),
                    text=f"lease of {names(late.process)} is over",
                )
            )
    return sorted(steps, key=lambda step: step.time_ns)


def _fault_notes(fault: FaultWindow, begin: int, end: int) -> list[Step]:
    workers = [target for target in fault.targets if is_worker(target)]
    actor = workers[0] if len(workers) == 1 else ""
    what = safe(fault.kind)
    where = "" if actor else f" on {safe(', '.join(fault.targets))[:60]}"
    notes = []
    for time_ns, word in ((fault.start_ns, "begins"), (fault.end_ns, "is healed")):
        if time_ns is not None and begin <= time_ns <= end:
            notes.append(
                Step(
                    time_ns=time_ns,
                    end_ns=time_ns,
                    kind="note",
                    actor=actor,
                    text=f"{what}{where} {word}",
                    fault=fault.id,
                )
            )
    return notes


def _lock_line(key: str | None) -> str:
    return "lock" if key is None else f"lock {safe(key)}"


def _message(op: Interval, names: Names, late: Sequence[Write]) -> Step:
    invoke, done = op.invoke, op.complete
    lock = invoke.f in LOCK_F
    target = _lock_line(invoke.key) if lock else f"resource {safe(invoke.key or '')}".strip()
    token = op.field("token")
    over = op.call_ns if done is None else done.time
    stale = not lock and any(
        write.hold == hold_of(op) and op.call_ns <= write.time_ns <= over for write in late
    )
    text = safe(invoke.f) + (f" with token {safe(token)}" if token is not None and not lock else "")
    return Step(
        time_ns=op.call_ns,
        end_ns=None if done is None or op.outcome == Type.INFO else done.time,
        kind="message",
        actor=names(invoke.process),
        target=target,
        text=text,
        reply=_reply(op, lock, token, stale=stale),
        red=stale and op.outcome == Type.OK,
    )


def _reply(op: Interval, lock: bool, token: Any, *, stale: bool) -> str:
    if op.complete is None:
        return "never answered"
    if op.outcome == Type.INFO:
        return "outcome unknown"
    if op.outcome == Type.FAIL:
        return f"refused: {safe(op.complete.error or 'failed')[:40]}"
    if lock and LOCK_F[op.invoke.f] == "acquire":
        return "granted" + ("" if token is None else f", token {safe(token)}")
    return "accepted, STALE" if stale else "accepted" if not lock else "ok"
