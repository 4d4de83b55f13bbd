"""Who holds what, event by event, and what cannot be right.

    trace = Trace(Mapping()); [trace.see(event) for event in events]; trace.end()
    trace.hits           # Hit(rule word, event, says)

A lock that was taken again while somebody else's hold was open is an overlap only if the first
holder's lease still ran, or if that holder is heard of again: a holder that died says nothing more,
and its lease may have been over.

Traps: clocks of different files differ; an overlap across files that is shorter than the allowed
skew is none.  Bounds on what is kept: locks and holders that are remembered, hits per lock.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from checkers.audit.logs.mapping import Mapping
from checkers.audit.logs.words import Event
from harness.core.limits import (
    AUDIT_LOG_HITS_MAX,
    AUDIT_LOG_HITS_OF_RULE_MAX,
    AUDIT_LOG_HOLDERS_MAX,
    AUDIT_LOG_LOCKS_MAX,
)

S = 1_000_000_000
BACK_NS = S  # threads write lines out of order, by less than this
STUCK_NS = 600 * S  # held without an end while others wait, where no lease is known
SYNC_GAPS = 5  # waits of one waiter that are looked at for being all the same
CHANGES, CHANGES_NS = 4, 60 * S


@dataclass
class Hold:
    """One hold; ``until`` is when its lease ends, None where nobody says."""

    taken: Event
    last: Event  # acquired or renewed
    until: int | None
    after: Event | None = None  # another's acquire while this was open
    lost: Event | None = None


@dataclass
class Lock:
    """What is remembered of one lock."""

    holds: dict[str, Hold] = field(default_factory=dict)
    over: dict[str, Hold] = field(default_factory=dict)  # lost or displaced, to hear of them again
    tries: dict[str, list[int]] = field(default_factory=dict)
    grants: list[Event] = field(default_factory=list)  # the last few
    refused: int = 0
    last_refused: Event | None = None


@dataclass(frozen=True)
class Hit:
    """Something that cannot be right: which rule's word, where, and in words."""

    what: str
    event: Event
    says: str


class Trace:
    """The state of all locks of a set of logs."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.locks: OrderedDict[str, Lock] = OrderedDict()
        self.hits: list[Hit] = []
        self.events: dict[str, int] = {}
        self.more: dict[str, int] = {}  # hits of a kind that are counted only
        self.listed: dict[str, int] = {}
        self._seen: dict[tuple[str, str], int] = {}
        self._clock: dict[str, Event] = {}

    def see(self, event: Event) -> None:
        """The next event, in the order of time."""
        self.events[event.path] = self.events.get(event.path, 0) + 1
        self._back(event)
        lock = self.locks.get(event.lock)
        if lock is None:
            lock = self.locks[event.lock] = Lock()
            if len(self.locks) > AUDIT_LOG_LOCKS_MAX:
                self.locks.popitem(last=False)
        getattr(self, f"_{event.kind}")(lock, event)

    def end(self) -> None:
        """After the last event: holds that never ended while others asked."""
        for lock in self.locks.values():
            for hold in lock.holds.values():
                asked = lock.last_refused
                if asked is None or hold.after is not None or asked.ns < hold.taken.ns:
                    continue
                lasted = asked.ns - hold.last.ns
                bound = max(STUCK_NS, 3 * ((hold.until or 0) - hold.last.ns))
                if lasted > bound:
                    self._hit(
                        "stuck", hold.taken,
                        f"{_who(hold.taken)} took it and never gave it back; others were refused "
                        f"{lock.refused} times, at last {lasted / S:.0f} s later (line "
                        f"{_at(asked, hold.taken)})",
                    )  # fmt: skip

    def _hit(self, what: str, event: Event, says: str) -> None:
        key = (what, event.lock)
        seen = self._seen.get(key, 0)
        self.listed.setdefault(what, 0)
        if seen < AUDIT_LOG_HITS_MAX and self.listed[what] < AUDIT_LOG_HITS_OF_RULE_MAX:
            self._seen[key] = seen + 1
            self.listed[what] += 1
            self.hits.append(Hit(what, event, f"lock {event.lock!r}: {says}"))
        else:
            self.more[what] = self.more.get(what, 0) + 1

    def _back(self, event: Event) -> None:
        before = self._clock.get(event.path)
        if before is not None and event.ns < before.ns - BACK_NS:
            back = (before.ns - event.ns) / S
            self._hit("back", event, f"the time of line {before.line} lies {back:g} s later")
        self._clock[event.path] = event

    def _acquired(self, lock: Lock, event: Event) -> None:
        lock.refused = 0 if event.holder not in lock.tries else lock.refused
        lock.tries.pop(event.holder, None)
        for holder, hold in list(lock.holds.items()):
            if holder == event.holder:
                continue
            slack = self.mapping.skew_ns if hold.taken.path != event.path else 0
            if hold.until is not None and hold.until - event.ns > slack:
                left = (hold.until - event.ns) / S
                self._hit(
                    "overlap", event,
                    f"{event.holder} is granted it {left:g} s before the lease of "
                    f"{_who(hold.last)} ends (line {_at(hold.last, event)})",
                )  # fmt: skip
            hold.after = event
            lock.over[holder] = lock.holds.pop(holder)
        lock.over.pop(event.holder, None)
        for kept in (lock.over, lock.tries):
            while len(kept) > AUDIT_LOG_HOLDERS_MAX:  # the oldest
                del kept[next(iter(kept))]
        until = None if event.ttl_ns is None else event.ns + event.ttl_ns
        lock.holds[event.holder] = Hold(event, event, until)
        self._changes(lock, event)

    def _changes(self, lock: Lock, event: Event) -> None:
        if lock.grants and lock.grants[-1].holder == event.holder:
            return
        lock.grants = [*lock.grants[-CHANGES:], event]
        first = lock.grants[0]
        leads = "lead" in event.lock.lower()
        if leads and len(lock.grants) > CHANGES and event.ns - first.ns < CHANGES_NS:
            self._hit(
                "changes", event,
                f"{len(lock.grants) - 1} new leaders in {(event.ns - first.ns) / S:.0f} s "
                f"(since line {_at(first, event)})",
            )  # fmt: skip

    def _released(self, lock: Lock, event: Event) -> None:
        own = lock.holds.pop(event.holder, None)
        if own is not None:
            self._late(own, event, "gives it back")
            return
        gone = lock.over.pop(event.holder, None)
        if gone is not None:
            self._heard(gone, event, "gives it back")
            return
        for hold in lock.holds.values():
            self._hit(
                "foreign", event,
                f"{event.holder} releases it while {_who(hold.taken)} has it (line "
                f"{_at(hold.taken, event)})",
            )  # fmt: skip

    def _renewed(self, lock: Lock, event: Event) -> None:
        own = lock.holds.get(event.holder)
        if own is None:
            gone = lock.over.get(event.holder)
            if gone is not None:
                self._heard(gone, event, "renews it")
            return
        if own.until is not None and event.ns > own.until:
            gap, lease = (event.ns - own.last.ns) / S, (own.until - own.last.ns) / S
            self._hit(
                "gap", event,
                f"{event.holder} renews it {gap:g} s after line {_at(own.last, event)}, with a "
                f"lease of {lease:g} s",
            )  # fmt: skip
        ttl_ns = event.ttl_ns or (None if own.until is None else own.until - own.last.ns)
        own.last, own.until = event, None if ttl_ns is None else event.ns + ttl_ns

    def _lost(self, lock: Lock, event: Event) -> None:
        own = lock.holds.pop(event.holder, None)
        if own is not None:
            own.lost = event
            lock.over[event.holder] = own

    def _refused(self, lock: Lock, event: Event) -> None:
        lock.refused, lock.last_refused = lock.refused + 1, event
        times = lock.tries.setdefault(event.holder, [])
        times.append(event.ns)
        if len(times) > SYNC_GAPS + 1:
            gaps = [
                b - a for a, b in zip(times[-SYNC_GAPS - 1 :], times[-SYNC_GAPS:], strict=False)
            ]
            mean = sum(gaps) / len(gaps)
            if mean > 0 and max(abs(gap - mean) for gap in gaps) < 0.05 * mean:
                self._hit(
                    "sync", event,
                    f"{event.holder} asks every {mean / S:.3g} s, {len(gaps) + 1} times, with no "
                    "growth and no chance in it",
                )  # fmt: skip
                times.clear()
            del times[: -SYNC_GAPS - 1]

    def _work(self, lock: Lock, event: Event) -> None:
        own = lock.holds.get(event.holder)
        if own is not None:
            self._late(own, event, "works under it")
        elif event.holder in lock.over:
            self._heard(lock.over[event.holder], event, "works under it")

    def _late(self, own: Hold, event: Event, does: str) -> None:
        if own.until is not None and event.ns > own.until:
            late = (event.ns - own.until) / S
            self._hit(
                "after", event,
                f"{event.holder} {does} {late:g} s after its lease is over (taken or renewed in "
                f"line {_at(own.last, event)})",
            )  # fmt: skip

    def _heard(self, gone: Hold, event: Event, does: str) -> None:
        """A holder whose lock is gone is heard of again."""
        if gone.lost is not None:
            if does != "gives it back":  # giving it back after the loss is tidying up
                self._hit(
                    "after", event,
                    f"{event.holder} {does} after it lost it (line {_at(gone.lost, event)})",
                )  # fmt: skip
            return
        other = gone.after
        if other is None:
            return
        slack = self.mapping.skew_ns if other.path != event.path else 0
        if event.ns - other.ns <= slack:
            return
        if gone.until is not None and gone.until < other.ns:
            self._late(gone, event, does)
            return
        both = (event.ns - other.ns) / S
        self._hit(
            "overlap", other,
            f"{other.holder} is granted it while {_who(gone.taken)} still has it (taken in line "
            f"{_at(gone.taken, other)}); both are inside for {both:g} s, until line "
            f"{_at(event, other)}",
        )  # fmt: skip


def _who(event: Event) -> str:
    return event.holder


def _at(event: Event, seen_from: Event) -> str:
    """The line of an event, with its file where that is another."""
    return str(event.line) if event.path == seen_from.path else f"{event.line} of {event.path}"
