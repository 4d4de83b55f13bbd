"""vacuity: did this run show anything at all?  A pass that tested nothing is the worst result.

UNKNOWN, with what was measured, why it matters, what to change and how to silence it, when

    nothing completed · no lock was granted · no two workers ever wanted one lock at once ·
    permits were never all out · no two readers met, or no writer got in · nobody crashed where
    that is the workload · a planned fault was not injected, left no evidence, or was not healed ·
    an aimed fault missed

Trap: this never says FALSE.  A run can be vacuous and still have found a violation, and then the
violation counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.models.base import ACQUIRE
from checkers.monitors.belief import Window
from checkers.monitors.span import INF, Span, ms
from checkers.view import View
from harness.core.history import NEMESIS, History, Type
from harness.core.protocols import CheckContext, FaultWindow
from harness.core.result import Anomaly, Result, Valid

HOLDING = frozenset({"held", "near-expiry", "renewing"})
CLAIM_LESS = "claim only what other checkers show, or leave vacuity out of the claim"
WAITING = frozenset({"waiting", "between-grant-and-reply"})


class Vacuity:
    """Health check of the run itself."""

    name = "vacuity"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        found = [*_work(view), *_faults(view)]
        completed = sum(1 for op in history if op.process != NEMESIS and op.type == Type.OK)
        return Result(
            checker=self.name,
            valid=Valid.UNKNOWN if found else Valid.TRUE,
            says=found[0].says
            if found
            else f"{completed} operations, {len(view.grants)} grants with contention, "
            f"{len(context.faults)} of {context.planned_faults} planned faults with evidence",
            anomalies=found,
            stats={
                "exact": True,
                "why": "read off the history and the evidence of the faults",
                "completed": completed,
                "grants": len(view.grants),
                "contended": view.contended,
                "planned_faults": context.planned_faults,
                "injected_faults": len(context.faults),
                "faults_with_evidence": sum(1 for fault in context.faults if fault.bit),
            },
            safety=self.safety,
        )


def _problem(kind: str, measured: str, why: str, change: str, silence: str) -> Anomaly:
    return Anomaly(
        kind=kind,
        says=f"{measured}. Why it matters: {why}. What to change: {change}. "
        f"How to silence: {silence}.",
    )


def _work(view: View) -> Iterator[Anomaly]:
    history = view.history
    if not any(op.process != NEMESIS and op.type == Type.OK for op in history):
        yield _problem(
            "nothing-completed",
            f"no operation completed ok, of {len(history.intervals())} that were begun",
            "a lock that is never used cannot break",
            "see the exceptions and the workers' logs, and give the run more time",
            "there is no way: such a run shows nothing",
        )
        return
    if not view.locks:
        return
    if not view.grants:
        yield _problem(
            "no-grant",
            "no lock was granted",
            "without a holder there is nothing to exclude",
            "raise workload.timeout_ms or the run's duration, and look at the exceptions",
            "there is no way: such a run shows nothing",
        )
    elif not view.contended:
        yield _problem(
            "no-contention",
            "no two workers ever wanted the same lock at the same time",
            "exclusion is only shown where somebody is kept out",
            "more workers, fewer keys, longer holds",
            CLAIM_LESS,
        )
    elif view.context.together > 1 and not view.contended_inside:
        yield _problem(
            "no-contention-inside",
            "no two users of one process ever wanted the same lock at the same time",
            "what they share is only put to the proof where one asks for what another holds",
            "more users together, fewer keys, longer holds",
            "use the workload mutex, where every client is a process of its own",
        )
    elif view.sharing.k > 1 and view.inside_max < view.sharing.k:
        yield _problem(
            "never-full",
            f"of {view.sharing.k} permits at most {view.inside_max} were out at once",
            "that no more are given is only shown where all are out",
            "more workers, longer holds, shorter pauses",
            CLAIM_LESS,
        )
    elif view.sharing.modes and view.readers_max < 2:
        yield _problem(
            "no-two-readers",
            "no two readers ever held the lock at the same time",
            "such a lock may be a plain mutex, and that readers share was not shown",
            "a greater readers_pct, more workers, longer holds",
            CLAIM_LESS,
        )
    elif view.sharing.modes and not view.written:
        yield _problem(
            "no-writer",
            "no writer was ever granted the lock",
            "that a writer is alone is only shown where there is one",
            "a smaller readers_pct, or a longer acquire_timeout_ms: do readers keep writers out?",
            CLAIM_LESS,
        )
    elif view.context.crashes and not view.crashes:
        yield _problem(
            "nobody-crashed",
            "no worker crashed in its section",
            "what becomes of the locks of the dead was not shown",
            "a smaller workload.params.every, a longer run",
            CLAIM_LESS,
        )


def _faults(view: View) -> Iterator[Anomaly]:
    context = view.context
    silence = "take the fault out of the scenario"
    if len(context.faults) < context.planned_faults:
        yield _problem(
            "fault-not-injected",
            f"{len(context.faults)} of {context.planned_faults} planned faults were injected",
            "the lock was not tested against the rest",
            "a longer run, an aim (when) that comes true, or a fault that this runtime can do",
            silence,
        )
    for fault in context.faults:
        name = f"fault {fault.kind} on {', '.join(fault.targets) or 'nothing'}"
        if not fault.bit:
            yield _problem(
                "fault-without-evidence",
                f"{name} at {ms(fault.start_ns)} left no evidence that it did anything"
                + (f" ({fault.says})" if fault.says else ""),
                "a fault that does not bite tests nothing",
                "look at its evidence in faults.jsonl",
                silence,
            )
        elif fault.end_ns is None or not fault.healed:
            yield _problem(
                "fault-not-healed",
                f"{name} was injected at {ms(fault.start_ns)} and not verified as healed",
                "what came after it was not a healthy system",
                "look at the heal in faults.jsonl, and run `lockhavoc heal`",
                "there is no way: fix the heal",
            )
        if not _hit(fault, view):
            yield _problem(
                "aim-missed",
                f"{name} was aimed at a moment ({fault.when}) that was not there at "
                f"{ms(fault.start_ns)}",
                "the interesting moment was not tested",
                "longer holds, or another aim",
                'leave out when = "..." if any moment will do',
            )


def _hit(fault: FaultWindow, view: View) -> bool:
    """Whether what the fault was aimed at (a holder, a waiter) overlaps it."""
    over = INF if fault.end_ns is None else fault.end_ns
    aimed = {process for target in fault.targets for process in view.processes(target)}
    if fault.when in HOLDING:
        return any(
            _meets(window.start, window.naive_end, fault.start_ns, over)
            and (not aimed or window.process in aimed)
            for window in _windows(view)
        )
    if fault.when in WAITING:
        return any(
            _meets(span.call, span.ret, fault.start_ns, over)
            and (not aimed or span.process in aimed)
            for span in _acquires(view)
        )
    return True


def _meets(start: int, end: int, other_start: int, other_end: int) -> bool:
    return start <= other_end and other_start <= end


def _windows(view: View) -> Iterator[Window]:
    for found in view.windows.values():
        yield from found


def _acquires(view: View) -> Iterator[Span]:
    for spans in view.locks.values():
        yield from (span for span in spans if span.f == ACQUIRE)
