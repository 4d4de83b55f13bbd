"""The lock monitors as online algorithms: constant work per event, memory for what is open only.

    online = Online(ttl_ns=10_000_000);  online.feed(batch of lines);  online.finish()

Completions do the work, invokes are just remembered.  Per key, the granted holds stand in a queue
in order of their grants' returns, and the first is *settled* as soon as nothing more can change it:
it was released, or another was granted after it and none of its own operations is under way.  To
settle a hold is to judge it against the one before: zones for the mutex, earliest points for the
lease (the batch form's ``chain``), tokens, believed windows.

A hold of unknown grant whose release is confirmed needs one instant: it waits as a ``Moment`` until
the holds around it are settled, and takes a token that the grants around it left out (jobs by
deadline into the first gap with room).

Where that is not enough the key is put ``aside`` with the reason, and the caller judges it by the
batch monitors.

What must be kept for an exact verdict: every operation under way (its completion may still come),
the last hold of each key, and of holds with an unknown end *that* they are, since whoever asks for
one of them again may confirm it.  The last are as many as clients leave behind, so they are
bounded: the oldest goes when there are HOLDS_UNSURE_MAX, and one whose release was answered "not
held" goes after HOLDS_OVER_MAX others like it, since hardly anybody asks again.  Should one come
back all the same, its name is unknown and its key is put aside: forgetting costs a second reading,
not exactness.  Of a hold's renews three times matter, however many there are (``earliest``).

Traps: lines must be in time order; equal times are concurrent, so nothing is settled before a later
event; a dead process' open operation is one that is under way for ever.
"""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import Any

from checkers.models.base import LOCK_F, STALE
from checkers.monitors.span import Verdict
from checkers.online_judge import ACQUIRE, RELEASE, RENEW
from checkers.online_keys import MARKS_MAX, Line, Resource
from checkers.online_locks import Locks, token_of
from checkers.online_says import LEASE
from checkers.online_wait import PROCESSES_MAX
from harness.core.errors import UserError
from harness.core.history import NEMESIS

WRITE = "write"
COUNTED_AT_ONCE = 512  # grants, for the figures of waiting
TIME, PROCESS = attrgetter("time"), attrgetter("process")


class Online(Locks):
    """All online monitors; see the module."""

    def __init__(
        self, *, ttl_ns: int | None = None, drift_ppm: int = 0, enforced: bool = True
    ) -> None:
        super().__init__(ttl_ns=ttl_ns, drift_ppm=drift_ppm, enforced=enforced)
        self.resources: dict[str | None, Resource] = {}
        self.events = self.workers = 0
        self.last_index = -1
        self.processes: set[int | str] = set()  # until the first unknown outcome
        self._on: dict[str, dict[str, Any]] = {
            "ok": _table(self.granted, self.released, self.renewed, self.wrote),
            "fail": _table(self.refused, self.not_ended, self.not_ended, self.unwritten),
            "info": _table(self.maybe_granted, self.maybe_released, _nothing, self.maybe_written),
        }

    def feed(self, batch: list[Line]) -> None:
        """Takes the next events.  UserError if they are malformed (nothing is judged then)."""
        if not batch:
            return
        pending, pop, on = self.pending, self.pending.pop, self._on
        granted, released, wrote, ok = self.granted, self.released, self.wrote, on["ok"]
        now, last = self.now, self.last_index
        for event in batch:
            process, at, index = event.process, event.time, event.index
            if at < now or index <= last:
                raise UserError(self.says.out_of_order(event, now, last))
            now = at
            last = index
            kind = event.type
            if kind == "invoke":
                if process in pending:
                    self.now = at
                    self.abandon(pending[process])
                pending[process] = event
                continue
            f = event.f
            invoke = pop(process, None)
            if invoke is None or f != invoke.f or event.key != invoke.key:
                self.unpaired(event, invoke)
                continue
            self.now = at
            if kind == "ok":  # each call is of one function: the interpreter learns what it calls
                if f == ACQUIRE:
                    granted(invoke, event)
                elif f == RELEASE:
                    released(invoke, event)
                elif f == WRITE:
                    wrote(invoke, event)
                else:
                    ok[f](invoke, event)
                continue
            on[kind][f](invoke, event)
            if kind == "info" and not self.workers and len(self.processes) <= PROCESSES_MAX:
                self.workers = self.processes_until(event, batch)
                self.processes.clear()
        if not self.workers and len(self.processes) <= PROCESSES_MAX:
            self.processes.update(map(PROCESS, batch))
        self.now, self.last_index = now, last
        self.events += len(batch)
        self.since = min(map(TIME, pending.values()), default=now)
        self.waits.count(COUNTED_AT_ONCE, self.workers)

    def processes_until(self, last: Line, batch: list[Line]) -> int:
        """How many processes there were before the first was replaced by another."""
        for event in batch:
            self.processes.add(event.process)
            if event is last:
                break
        self.processes.discard(NEMESIS)
        return len(self.processes)

    def resource(self, key: str | None) -> Resource:
        """The resource that is written to for the first time."""
        made = self.resources[key] = Resource(key)
        return made

    def unpaired(self, event: Line, invoke: Line | None) -> None:
        """Only the nemesis, and a signal of loss, come without an invoke."""
        if invoke is not None:
            self.pending[invoke.process] = invoke
        if event.f == "lost":
            self.told_lost(event)
        elif event.process != NEMESIS:
            raise UserError(self.says.unpaired(event, invoke))

    def abandon(self, invoke: Line) -> None:
        """An operation that never completes, since its process goes on: unknown for ever."""
        self._on["info"][invoke.f](invoke, invoke)

    # The fenced resource.

    def wrote(self, invoke: Line, event: Line) -> None:
        """A write was accepted."""
        key, call, token = invoke.key, invoke.time, event.value.token
        try:
            resource = self.resources[key]
        except KeyError:
            resource = self.resource(key)
        if token.__class__ is not int:
            token = token_of(invoke, event)
            if token is None:
                self.put_aside(key, "some writes carry no token")
                return
        self.says.accepted += 1
        if resource.at >= call:
            self.overlapped(resource, invoke, event, token)
        elif token < resource.greatest:
            self.says.stale_write(invoke, event, token, (resource.greatest, resource.greatest_by))
        marks = resource.marks
        if marks and resource.at <= self.since:
            marks.clear()  # all that is under way was asked for later
        marks.append((resource.index, resource.at, resource.greatest, resource.greatest_by))
        resource.at = event.time
        resource.index = event.index
        if token > resource.greatest:
            resource.greatest = token
            resource.greatest_by = event.index

    def overlapped(self, resource: Resource, invoke: Line, event: Line, token: int) -> None:
        """A write was accepted, and another one while it was under way: what counts is what had
        been accepted when it was asked for."""
        found = resource.before(invoke.index)
        if found is None:
            self.put_aside(resource.key, f"a write took longer than {MARKS_MAX} others")
            return
        at, greatest, greatest_by = found
        if at == invoke.time:
            self.put_aside(resource.key, "a write begins when another ends")
        if token < greatest:
            self.says.stale_write(invoke, event, token, (greatest, greatest_by))

    def unwritten(self, invoke: Line, event: Line) -> None:
        """A write was refused; as stale, it needs a greater token accepted before."""
        resource = self.resources.get(invoke.key) or self.resource(invoke.key)
        if event.error != STALE:
            return
        token = token_of(invoke, event)
        self.says.stale_refused += 1
        if token is None or token >= resource.greatest:
            # Only a write of unknown outcome, or one under way, can explain it: rare.
            self.put_aside(invoke.key, "a refusal that no accepted write explains")

    def maybe_written(self, invoke: Line, event: Line) -> None:
        """A write of unknown outcome: it says nothing, but there is such a resource."""
        if invoke.key not in self.resources:
            self.resource(invoke.key)

    def finish(self) -> dict[str, Verdict]:
        """Everything is known now: settles what is left and gives the verdicts."""
        for invoke in list(self.pending.values()):
            self.abandon(invoke)
        self.waits.count(1, self.workers)
        for lock in self.locks.values():
            self.unfold(lock)
            if lock.fresh is not None:
                self.enrol(lock, lock.fresh)
            while lock.queue:
                hold = lock.queue.popleft()
                hold.believed = min(hold.believed, max(hold.a, self.now))
                self.judge(lock, hold)
            for moment in lock.moments:
                if not moment.placed and lock.free > moment.high and lock.free_by is not None:
                    self.says.no_instant(lock.free_by, moment, LEASE)
        return self.says.verdicts(self)


def _nothing(invoke: Line, event: Line) -> None:
    """The handler of operations that say nothing here."""


def _table(acquire: Any, release: Any, renew: Any, write: Any) -> dict[str, Any]:
    """Handlers by the names that histories use."""
    by_word = {ACQUIRE: acquire, RELEASE: release, RENEW: renew}
    found: dict[str, Any] = defaultdict(lambda: _nothing, {WRITE: write})
    found.update((name, by_word[word]) for name, word in LOCK_F.items())
    return found
