"""Locks that several may hold at once: who may be inside beside whom.

    sharing = view.sharing                     # a mutex unless the run says otherwise
    sharing.clash(one, other)                  # may these two not hold at once?
    sharing.ended(ops, ttl_ns=..., drift_ppm=0)    # with the ends of leases, for the monitors

A mutex: nobody beside anybody.  A read/write lock: readers beside readers.  A semaphore: any k.

Trap: the monitors of semaphores and read/write locks know no leases.  A hold is surely there only
to the earliest end of its lease, so that end is put in as a release of unknown outcome, and a
release that came later proves nothing: the service may have let somebody in meanwhile, rightly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, BUSY, LOCK_F, RELEASE
from checkers.models.shared import MODES, READ
from checkers.monitors.belief import Overlap, Pause, Window, crowds, overlaps
from checkers.monitors.lease import shortest
from checkers.monitors.span import Span
from harness.core.history import Interval, Op, Type


class Sharing(msgspec.Struct, frozen=True):
    """k: how many may hold at once.  modes: whether there are readers and writers."""

    k: int = 1
    modes: bool = False

    @property
    def shared(self) -> bool:
        """Whether several may hold at once."""
        return self.k > 1 or self.modes

    def clash(self, one: Span, other: Span) -> bool:
        """Whether two grants exclude each other by themselves (permits only do so by number)."""
        if self.k > 1:
            return False
        return not (self.modes and reads(one) and reads(other))

    def overlaps(self, found: list[Window], *, pauses: Sequence[Pause] = ()) -> list[Overlap]:
        """Believed windows of one key that must not have been at once."""
        if self.k > 1:
            return crowds(found, self.k, pauses=pauses)
        if not self.modes:
            return overlaps(found, pauses=pauses)
        return overlaps(found, pauses=pauses, clash=lambda x, y: self.clash(x.acquire, y.acquire))

    def ended(
        self, ops: Iterable[Interval], *, ttl_ns: int | None, drift_ppm: int
    ) -> list[Interval]:
        """Operations without refusals for being busy, and with the ends of leases."""
        kept = [op for op in ops if not _busy(op)]
        return kept if ttl_ns is None else _with_ends(kept, ttl_ns, drift_ppm)


def reads(span: Span) -> bool:
    """Whether an acquire asked to share with readers."""
    said = span.value.get("mode")
    return isinstance(said, str) and MODES.get(said.lower()) == READ


def _busy(op: Interval) -> bool:
    done = op.complete
    return done is not None and done.type == Type.FAIL and done.error == BUSY


def _with_ends(ops: list[Interval], ttl_ns: int, drift_ppm: int) -> list[Interval]:
    """Each hold ends with its lease at the latest, as far as anybody can be sure."""
    last: dict[tuple[str | None, Any], tuple[Op, int]] = {}  # its refresh, and when that ends
    found: list[Interval] = []
    over: dict[tuple[str | None, Any], int] = {}
    own: dict[tuple[str | None, Any], int] = {}
    for op in ops:
        f, name = LOCK_F.get(op.invoke.f), (op.invoke.key, op.field("hold"))
        if f is None or name[1] is None:
            found.append(op)
            continue
        if op.outcome == Type.OK and f != RELEASE:
            given = op.field("ttl_ns")
            lasts = given if isinstance(given, int) else own.get(name, ttl_ns)
            if f == ACQUIRE:
                own[name] = lasts
            end = op.call_ns + shortest(lasts, drift_ppm)
            if end >= over.get(name, 0):
                last[name], over[name] = (op.invoke, end), end
        elif op.outcome == Type.OK and name in over and op.call_ns > over[name]:
            continue  # asked when the lease was over: it proves nothing, and its end is below
        found.append(op)
    for (_, hold), (invoke, end) in last.items():
        value = {"hold": hold}
        release = msgspec.structs.replace(invoke, f=RELEASE, time=end, value=value)
        found.append(Interval(release, None))
    return found
