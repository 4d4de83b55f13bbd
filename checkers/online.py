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
batch monitors.  Traps: lines must be in time order; equal times are concurrent, so nothing is
settled before a later event; forgetting (HOLDS_REMEMBERED_MAX) is never silent.
"""

from __future__ import annotations

from typing import Any

from checkers.models.base import LOCK_F, STALE
from checkers.monitors.span import Verdict
from checkers.online_judge import ACQUIRE, RELEASE, RENEW
from checkers.online_keys import Line, Resource
from checkers.online_locks import Locks, token_of
from checkers.online_says import LEASE
from harness.core.errors import UserError
from harness.core.history import NEMESIS

WRITE = "write"


class Online(Locks):
    """All online monitors; see the module."""

    def __init__(
        self, *, ttl_ns: int | None = None, drift_ppm: int = 0, enforced: bool = True
    ) -> None:
        super().__init__(ttl_ns=ttl_ns, drift_ppm=drift_ppm, enforced=enforced)
        self.resources: dict[str | None, Resource] = {}
        self.events = self.workers = 0
        self.last_index = -1
        self._on: dict[str, dict[str, Any]] = {
            "ok": _table(self.granted, self.released, self.renewed, self.wrote),
            "fail": _table(self.refused, self.not_ended, self.not_ended, self.unwritten),
            "info": _table(self.maybe_granted, self.maybe_released, None, None),
        }

    def feed(self, batch: list[Line]) -> None:
        """Takes the next events.  UserError if they are malformed (nothing is judged then)."""
        pending, now, last = self.pending, self.now, self.last_index
        on, get, resources = self._on, self.pending.get, self.resources
        for event in batch:
            time, index, process = event.time, event.index, event.process
            if time < now or index <= last:
                raise UserError(self.says.out_of_order(event, now, last))
            now, last = time, index
            invoke = get(process)
            kind = event.type
            if kind == "invoke":
                if invoke is not None:
                    self.now = now
                    self.abandon(invoke)
                pending[process] = event
                if event.f == WRITE:
                    resource = resources.get(event.key)
                    if resource is None:
                        resource = resources[event.key] = Resource(event.key)
                    if resource.at == time:
                        self.put_aside(event.key, "a write begins when another ends")
                    event.floor, event.floor_by = resource.greatest, resource.greatest_by
                continue
            if invoke is None or event.f != invoke.f or event.key != invoke.key:
                self.unpaired(event, invoke)
                continue
            pending[process] = None
            handler = on[kind].get(invoke.f)
            if handler is not None:
                self.now = now
                handler(invoke, event)
            if kind == "info":
                if not self.workers:
                    self.workers = len(pending)
                del pending[process]  # by the session rule it is not heard of again
        self.now, self.last_index = now, last
        self.events += len(batch)
        self.waits.granted(self.grants)
        self.grants.clear()

    def unpaired(self, event: Line, invoke: Line | None) -> None:
        """Only the nemesis, and a signal of loss, come without an invoke."""
        if event.f == "lost":
            self.told_lost(event)
        elif event.process != NEMESIS:
            raise UserError(self.says.unpaired(event, invoke))

    def abandon(self, invoke: Line) -> None:
        """An operation that never completes, since its process goes on: unknown for ever."""
        handler = self._on["info"].get(invoke.f)
        if handler is not None:
            handler(invoke, invoke)

    # The fenced resource.

    def wrote(self, invoke: Line, event: Line) -> None:
        """A write was accepted."""
        given = event.value.token
        number = given if isinstance(given, int) else token_of(invoke, event)
        if number is None:
            self.put_aside(invoke.key, "some writes carry no token")
            return
        resource = self.resources[invoke.key]
        self.says.accepted += 1
        if number < invoke.floor:
            self.says.stale_write(invoke, event, number)
        resource.at = event.time
        if number > resource.greatest:
            resource.greatest, resource.greatest_by = number, event.index

    def unwritten(self, invoke: Line, event: Line) -> None:
        """A write was refused; as stale, it needs a greater token accepted before."""
        if event.error != STALE:
            return
        token = token_of(invoke, event)
        self.says.stale_refused += 1
        if token is None or token >= self.resources[invoke.key].greatest:
            # Only a write of unknown outcome, or one under way, can explain it: rare.
            self.put_aside(invoke.key, "a refusal that no accepted write explains")

    def finish(self) -> dict[str, Verdict]:
        """Everything is known now: settles what is left and gives the verdicts."""
        for invoke in list(self.pending.values()):
            if invoke is not None:
                self.abandon(invoke)
        for lock in self.locks.values():
            self.unfold(lock)
            while lock.queue:
                hold = lock.queue.popleft()
                hold.believed = min(hold.believed, max(hold.a, self.now))
                self.judge(lock, hold)
            for moment in lock.moments:
                if not moment.placed and lock.free > moment.high and lock.free_by is not None:
                    self.says.no_instant(lock.free_by, moment, LEASE)
        return self.says.verdicts(self)


def _table(acquire: Any, release: Any, renew: Any, write: Any) -> dict[str, Any]:
    """Handlers by the names that histories use."""
    by_word = {ACQUIRE: acquire, RELEASE: release, RENEW: renew}
    return {**{name: by_word[word] for name, word in LOCK_F.items()}, WRITE: write}
