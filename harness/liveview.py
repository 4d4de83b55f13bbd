"""Who holds what *now*: what aimed faults look at.

It follows the operations as the harness sees them: a hold begins when the grant is received and
ends when its release is sent, a renewal is refused or its worker dies.  It is a belief, as good as
the harness' knowledge, and only used for aiming; checkers judge the history instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.history import Type

_OK = str(Type.OK)


class Hold(msgspec.Struct, gc=False):
    """A hold that a worker believes in; times are readings of the run's clock in ns."""

    worker: int
    key: str
    hold: str
    granted_ns: int
    expires_ns: int | None
    nodes: tuple[str, ...] = ()  # the servers that granted, as far as the client told


class LiveView:
    """Holds and waiting acquires by worker (one operation per worker, one hold per lock of it)."""

    def __init__(self) -> None:
        self._holds: dict[tuple[int, str], Hold] = {}
        self._waiting: dict[int, tuple[int, str]] = {}
        self._renewing: set[int] = set()

    def holders(self) -> Sequence[int]:
        """Workers that hold a lock, oldest grant first."""
        return list(dict.fromkeys(hold.worker for hold in self.holds()))

    def granters(self) -> Sequence[str]:
        """Names of the servers that gave the oldest grant, as far as its client told."""
        return next((hold.nodes for hold in self.holds()), ())

    def granted_since(self, time_ns: int) -> Sequence[int]:
        """Holders whose grant was received at ``time_ns`` or later."""
        return [hold.worker for hold in self.holds() if hold.granted_ns >= time_ns]

    def waiters(self) -> Sequence[int]:
        """Workers with an acquire in flight whose lock somebody else holds, oldest first."""
        held = {hold.key for hold in self._holds.values()}
        waiting = [(since, w) for w, (since, key) in self._waiting.items() if key in held]
        return [worker for _, worker in sorted(waiting)]

    def renewing(self) -> Sequence[int]:
        """Workers with a renewal in flight."""
        return sorted(self._renewing)

    def granting(self) -> Sequence[int]:
        """Workers with an acquire in flight for a lock that nobody is known to hold."""
        held = {hold.key for hold in self._holds.values()}
        return sorted(w for w, (_, key) in self._waiting.items() if key not in held)

    def holds(self) -> Sequence[Hold]:
        """All holds, oldest first."""
        return sorted(self._holds.values(), key=_granted)

    def expiring(self, now_ns: int, near_ns: int) -> Sequence[int]:
        """Holders whose lease ends within ``near_ns``, or should have ended already."""
        return [
            hold.worker
            for hold in self.holds()
            if hold.expires_ns is not None and hold.expires_ns - now_ns <= near_ns
        ]

    def next_expiring_ns(self, near_ns: int) -> int | None:
        """When ``expiring`` will next name somebody, if nothing else happens."""
        ends = [h.expires_ns - near_ns for h in self._holds.values() if h.expires_ns is not None]
        return min(ends, default=None)

    def sent(self, worker: int, do: str, key: str, now_ns: int) -> None:
        """An operation was handed to a worker."""
        if do == "acquire":
            self._waiting[worker] = (now_ns, key)
        elif do == "release":
            self._holds.pop((worker, key), None)
        elif do == "renew":
            self._renewing.add(worker)

    def completed(
        self,
        worker: int,
        do: str,
        type_: str,
        key: str,
        hold: str,
        now_ns: int,
        ttl_ns: int | None,
        nodes: Sequence[str] = (),
    ) -> None:
        """An operation ended; ``ttl_ns`` counts from now (grant received)."""
        if do == "acquire":
            self._waiting.pop(worker, None)
            if type_ == _OK:
                expires_ns = None if ttl_ns is None else now_ns + ttl_ns
                self._holds[worker, key] = Hold(worker, key, hold, now_ns, expires_ns, tuple(nodes))
        elif do == "renew":
            self._renewing.discard(worker)
            current = self._holds.get((worker, key))
            if current is not None and type_ == Type.OK and ttl_ns is not None:
                current.expires_ns = now_ns + ttl_ns
            elif current is not None and type_ != Type.OK:
                del self._holds[worker, key]

    def died(self, worker: int) -> None:
        """A worker is gone: it neither holds nor waits."""
        self._holds = {place: hold for place, hold in self._holds.items() if place[0] != worker}
        self._waiting.pop(worker, None)
        self._renewing.discard(worker)


def _granted(hold: Hold) -> int:
    return hold.granted_ns
