"""A run as the checkers look at it: who works where, believed windows, holds, pauses, signals.

    view = View(history, context)
    view.worker(17), view.windows["k0"], view.pauses, view.holds["k0"]

Everything is derived once from (History, CheckContext) and cached; nothing is judged here.

Traps.  A process number is not a worker: after an unknown outcome a worker goes on under the next
number, which is the same modulo the number of workers (``extra.worker`` says it where present).
Fault windows are in their widest reading, so a pause is the longest time in it in which the worker
did nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from checkers.models.base import ACQUIRE, BUSY, LOCK_F, RELEASE, RENEW
from checkers.models.shared import RW_F
from checkers.monitors.belief import LOST, Pause, Window, windows
from checkers.monitors.span import INF, Span, by_key
from checkers.sharing import Sharing, reads
from harness.core.history import NEMESIS, History, Interval, Op, Type
from harness.core.protocols import CheckContext, FaultWindow

WORKER_KILL, WORKER_PAUSE = "worker-kill", "worker-pause"
CRASH = "crash"  # operation of a worker that dies because its workload says so


class View:
    """What checkers want to know of a run."""

    def __init__(self, history: History, context: CheckContext) -> None:
        self.history, self.context = history, context

    @cached_property
    def ttl_ns(self) -> int | None:
        """TTL of leases: of the run, else of the history's header."""
        if self.context.lease_kind != "ttl":
            return None
        known = self.context.ttl_ns
        return self.history.header.ttl_ns if known is None else known

    @cached_property
    def locks(self) -> dict[str | None, list[Span]]:
        """Lock operations per key, plain failures too (``seen == "fail"``)."""
        return by_key(self.history.intervals(), LOCK_F, fails=True)

    @cached_property
    def ops(self) -> list[Interval]:
        """The operations as the *service* is judged by them: with the ends that nobody asked for,
        where a lock ends with its connection."""
        ops = self.history.intervals()
        return [*ops, *unasked_ends(ops)] if self.bound else ops

    @cached_property
    def bound(self) -> bool:
        """Whether a lock lives as long as its session or connection, which may end at any time."""
        return self.context.lease_kind in ("session", "connection")

    @cached_property
    def judged(self) -> dict[str | None, list[Span]]:
        """Lock operations per key that say something."""
        locks = by_key(self.ops, LOCK_F, fails=True) if self.bound else self.locks
        return {
            key: [span for span in spans if span.seen != "fail"] for key, spans in locks.items()
        }

    @cached_property
    def grants(self) -> list[Span]:
        """Acquires that were answered ok, by time of the answer."""
        found = [s for spans in self.locks.values() for s in spans if s.f == ACQUIRE and s.ok]
        return sorted(found, key=lambda span: (span.ret, span.event))

    @cached_property
    def leased(self) -> bool:
        """Whether locks run out here."""
        if self.context.lease_kind != "ttl":
            return False
        if self.ttl_ns is not None:
            return True
        return any(
            span.ttl is not None
            for spans in self.locks.values()
            for span in spans
            if span.f in (ACQUIRE, RENEW)
        )

    @cached_property
    def sharing(self) -> Sharing:
        """Who may hold a lock beside whom."""
        k = self.context.k if self.context.k > 1 else (self.history.header.k or 1)
        return Sharing(k, self._kinds())

    def _kinds(self) -> bool:
        """Whether locks have read and write modes here."""
        return any(
            op.invoke.f in RW_F or (op.invoke.f in LOCK_F and op.field("mode") is not None)
            for op in self.history.intervals()
        )

    @cached_property
    def _named(self) -> dict[int | str, int]:
        found: dict[int | str, int] = {}
        for op in self.history:
            worker = op.extra.get("worker")
            if isinstance(worker, int):
                found[op.process] = worker
        return found

    def worker(self, process: int | str) -> int | None:
        """The worker's index, None if the history does not tell."""
        if process in self._named:
            return self._named[process]
        if isinstance(process, int):
            return process % self.context.workers if self.context.workers else process
        return None

    @cached_property
    def _processes(self) -> dict[int, list[int | str]]:
        found: dict[int, list[int | str]] = {}
        for process in dict.fromkeys(op.process for op in self.history if op.process != NEMESIS):
            worker = self.worker(process)
            if worker is not None:
                found.setdefault(worker, []).append(process)
        return found

    def processes(self, target: str) -> list[int | str]:
        """Processes of the worker that a fault names ("w3"), and of those who live with it."""
        number = target.removeprefix("w")
        if not number.isdigit():
            return []
        house = int(number) // self.context.together
        found: list[int | str] = []
        for worker in range(house * self.context.together, (house + 1) * self.context.together):
            found += self._processes.get(worker, [])
        return found

    @cached_property
    def deaths(self) -> dict[int | str, list[int]]:
        """When a process' worker was killed (ns)."""
        found: dict[int | str, list[int]] = {}
        for fault in self.context.faults:
            if fault.kind == WORKER_KILL and fault.bit:
                for target in fault.targets:
                    for process in self.processes(target):
                        found.setdefault(process, []).append(fault.start_ns)
        for process, fault in self._crashed:
            found.setdefault(process, []).append(fault.start_ns)
        return found

    @cached_property
    def crashes(self) -> list[FaultWindow]:
        """Deaths that were the workload's own doing, as faults on their workers."""
        return [fault for _, fault in self._crashed]

    @cached_property
    def _crashed(self) -> list[tuple[int | str, FaultWindow]]:
        found: list[tuple[int | str, FaultWindow]] = []
        for op in self.history.intervals():
            process = op.invoke.process
            if op.invoke.f != CRASH or op.complete is None:
                continue
            fault = FaultWindow(
                id=-1 - len(found),
                kind=WORKER_KILL,
                targets=[f"w{self.worker(process)}"],
                start_ns=op.invoke.time,
                end_ns=op.complete.time,
                bit=True,
                healed=True,
            )
            found.append((process, fault))
        return found

    def waited_to(self, span: Span) -> int:
        """Until when the client of an operation waited for its answer (ns): to its completion, of
        whatever outcome, or its death; INF if there was neither."""
        ops = self.history.ops
        until = ops[span.done].time if 0 <= span.done < len(ops) else INF
        died = (at for at in self.deaths.get(span.process, ()) if at >= span.call)
        return min(until, min(died, default=INF))

    @cached_property
    def pauses(self) -> list[Pause]:
        """Sleeps of processes: from the last thing done in the window to the first after it."""
        found = []
        for fault in self.context.faults:
            if fault.kind == WORKER_PAUSE and fault.bit:
                for target in fault.targets:
                    found += [self._pause(process, fault) for process in self.processes(target)]
        return found

    def _pause(self, process: int | str, fault: FaultWindow) -> Pause:
        """The longest silence in the window: it may still act just before it is stopped, and again
        between being woken and the harness having seen that."""
        over = INF if fault.end_ns is None else fault.end_ns
        best, last = (fault.start_ns, fault.start_ns), fault.start_ns
        for time in self._activity.get(process, ()):
            if time <= fault.start_ns:
                continue
            if time - last > best[1] - best[0]:
                best = (last, time)
            last = time
            if time >= over:
                return Pause(process, *best)
        return Pause(process, *(best if 0 < over - last < best[1] - best[0] else (last, INF)))

    @cached_property
    def _activity(self) -> dict[int | str, list[int]]:
        found: dict[int | str, list[int]] = {}
        for op in self.history:
            if op.process != NEMESIS:
                found.setdefault(op.process, []).append(op.time)
        return found

    @cached_property
    def lost(self) -> dict[str | None, list[Op]]:
        """Loss signals per key."""
        found: dict[str | None, list[Op]] = {}
        for op in self.history:
            if op.f == LOST:
                found.setdefault(op.key, []).append(op)
        return found

    def believed(self, *, enforced: bool) -> dict[str | None, list[Window]]:
        """Believed windows per key; ``enforced``: with the clients' own deadline."""
        return {
            key: windows(
                spans,
                ttl_ns=self.ttl_ns,
                enforced=enforced,
                lost=self.lost.get(key, ()),
                deaths=self.deaths,
                end_ns=self.history.end_ns,
            )
            for key, spans in self.locks.items()
        }

    @cached_property
    def windows(self) -> dict[str | None, list[Window]]:
        """Believed windows as the clients of this run keep them."""
        return self.believed(enforced=self.context.enforced_deadline)

    @cached_property
    def inside_max(self) -> int:
        """Most processes that believed to hold one lock at once."""
        return max((_most(found) for found in self.windows.values()), default=0)

    @cached_property
    def readers_max(self) -> int:
        """The same of readers alone."""
        return max(
            (_most([w for w in found if reads(w.acquire)]) for found in self.windows.values()),
            default=0,
        )

    @cached_property
    def written(self) -> bool:
        """Whether one that asked for it as a writer (not as a probe) was ever granted a lock."""
        return any(span.value.get("mode") is not None and not reads(span) for span in self.grants)

    @cached_property
    def contended(self) -> bool:
        """Whether two processes ever wanted one key at the same time: one waited or was refused
        while another held, waited, or tried."""
        return any(_contended(spans) for spans in self.locks.values())

    @cached_property
    def contended_inside(self) -> bool:
        """Whether two users of one process ever wanted one key at the same time."""
        houses: dict[tuple[str | None, int], list[Span]] = {}
        for key, spans in self.locks.items():
            for span in spans:
                worker = self.worker(span.process)
                if worker is not None:
                    houses.setdefault((key, worker // self.context.together), []).append(span)
        return any(_overlaps(spans) for spans in houses.values())


def _most(windows: Sequence[Window]) -> int:
    """Most windows that are open at one time; touching is no overlap."""
    changes = [(w.start, 1) for w in windows if w.end > w.start]
    changes += [(w.end, -1) for w in windows if w.end > w.start]
    inside = most = 0
    for _, change in sorted(changes):
        inside += change
        most = max(most, inside)
    return most


def unasked_ends(ops: Sequence[Interval]) -> list[Interval]:
    """For each hold a release of unknown outcome, from its last confirmation on.

    So says what a session lock promises: it is there as long as its session, whose end is no
    operation and may come at any time.  Surely held is it up to the last answer that it still was.
    """
    last: dict[tuple[str | None, object], Op] = {}
    for op in ops:
        f, name = LOCK_F.get(op.invoke.f), (op.invoke.key, op.field("hold"))
        if f is None or name[1] is None or op.outcome == Type.FAIL:
            continue
        if f == RELEASE and op.outcome == Type.OK:
            last.pop(name, None)  # it was held until then: no other end
        elif f == ACQUIRE or op.outcome == Type.OK:
            last[name] = op.invoke
    return [
        Interval(msgspec.structs.replace(invoke, f=RELEASE, value={"hold": hold}), None)
        for (_, hold), invoke in last.items()
    ]


def _contended(spans: list[Span]) -> bool:
    return any(span.f == ACQUIRE and span.seen == BUSY for span in spans) or _overlaps(spans)


def _overlaps(spans: list[Span]) -> bool:
    """Whether one process asked while another of these held, waited, or tried."""
    wants: dict[int | str, int] = {}  # process -> until when it wants or has the lock
    for span in sorted(spans, key=lambda span: (span.call, span.invoke)):
        if span.f == ACQUIRE:
            others = (until for process, until in wants.items() if process != span.process)
            if any(until >= span.call for until in others):
                return True
            wants[span.process] = INF if span.seen is None else span.ret
        elif span.f == RELEASE and span.seen is None:
            wants[span.process] = span.ret if span.ok else INF
    return False
