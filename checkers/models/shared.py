"""Locks with several holders: semaphore with k permits, read/write lock.

    Semaphore(k=3):  acquire takes ``value.permits`` (default 1) if that many are left; release
                     gives back ``value.permits``, by default all of its hold, else 1
    RwLock():        any number of readers, or one writer alone; read holds are counted

Holders are told apart by hold id where the operation has one, else by owner (else process), and an
owner may hold several permits or read holds.  The mode of a read/write lock is ``value.mode`` (read
or shared, write or exclusive) or part of the name (``acquire-read``, ``wlock`` ...; see RW_F).  A
release without a mode gives back what its holder has.  ``downgrade`` makes the writer a reader,
``upgrade`` the only reader the writer.  *busy* and *not-held* are guards on the state.

Traps: give a release the hold id of its acquire, or give none to both: a hold and an owner are
never the same holder here.  ``write needs nobody`` includes the caller's own read holds.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from checkers.models.base import (
    ACQUIRE,
    BUSY,
    LOCK_F,
    NOT_HELD,
    RELEASE,
    RENEW,
    Model,
    hold_of,
    integer,
    observed,
    owner_of,
)
from harness.core.errors import UserError
from harness.core.history import Interval, Type

READ, WRITE = "read", "write"
UPGRADE, DOWNGRADE = "upgrade", "downgrade"

MODES: dict[str, str] = {
    "read": READ,
    "shared": READ,
    "r": READ,
    "s": READ,
    "write": WRITE,
    "exclusive": WRITE,
    "w": WRITE,
    "x": WRITE,
}

# Names that carry the mode; plain acquire and release are in LOCK_F.
RW_F: dict[str, tuple[str, str | None]] = {
    "downgrade": (DOWNGRADE, None),
    "upgrade": (UPGRADE, None),
    **{
        name: (what, mode)
        for mode, words in ((READ, ("read", "shared")), (WRITE, ("write", "exclusive")))
        for word in words
        for what, verbs in ((ACQUIRE, ("acquire", "lock")), (RELEASE, ("release", "unlock")))
        for verb in verbs
        for name in (f"{verb}-{word}", f"{word}-{verb}", f"{verb}_{word}", f"{word}_{verb}")
    },
    "rlock": (ACQUIRE, READ),
    "runlock": (RELEASE, READ),
    "wlock": (ACQUIRE, WRITE),
    "wunlock": (RELEASE, WRITE),
}


def holder_of(op: Interval) -> Hashable:
    """The hold id, marked as such, else the owner."""
    hold = hold_of(op)
    return owner_of(op) if hold is None else ("hold", hold)


def _refusal(op: Interval, f: str) -> str | None:
    """The guard a failed operation stands for: BUSY, NOT_HELD, or None if it says nothing."""
    seen = observed(op)
    wants = f in (ACQUIRE, UPGRADE)
    return seen if seen == (BUSY if wants else NOT_HELD) else None


def _changed(
    counts: frozenset[tuple[Any, int]], who: Hashable, by: int
) -> frozenset[tuple[Any, int]]:
    """``counts`` with ``by`` more (or less) for ``who``; nobody is listed with 0."""
    had = _count(counts, who)
    rest = counts - {(who, had)} if had else counts
    return rest | {(who, had + by)} if had + by else rest


def _count(counts: frozenset[tuple[Any, int]], who: Hashable) -> int:
    for one, number in counts:
        if one == who:
            return number
    return 0


class Semaphore(Model):
    """``k`` permits.  State: frozenset of (holder, permits held)."""

    name = "semaphore"
    init: Any = frozenset()

    def __init__(self, *, k: int = 1) -> None:
        if k < 1:
            raise UserError(f"semaphore: k is {k}, but it must be at least 1 permit")
        self.k = k

    def prepare(self, op: Interval) -> Any:
        f = LOCK_F.get(op.invoke.f)
        if f is None:
            return None
        permits = integer(op.field("permits"))
        if permits is None and (f == ACQUIRE or hold_of(op) is None):
            permits = 1
        if op.outcome == Type.FAIL:
            seen = _refusal(op, f)
            return None if seen is None else (seen, holder_of(op), permits)
        return f, holder_of(op), permits

    def watches(self, op: Any) -> bool:
        return op[0] in (RENEW, BUSY, NOT_HELD)

    def step(self, state: Any, op: Any) -> Any:
        f, who, permits = op
        if f in (ACQUIRE, BUSY):
            fits = 0 < permits <= self.k - sum(number for _, number in state)
            if f == BUSY:
                return None if fits else state
            return _changed(state, who, permits) if fits else None
        had = _count(state, who)
        enough = had > 0 and (permits is None or 0 < permits <= had)
        if f == NOT_HELD:
            return None if enough else state
        if not enough:
            return None
        if f == RENEW:
            return state
        return _changed(state, who, -(had if permits is None else permits))


class RwLock(Model):
    """Readers share, a writer is alone.  State: (writer's holder or None, counts of readers)."""

    name = "rwlock"
    init: Any = (None, frozenset())

    def prepare(self, op: Interval) -> Any:
        f, mode = RW_F.get(op.invoke.f, (LOCK_F.get(op.invoke.f), None))
        if f is None:
            return None
        said = op.field("mode")
        if isinstance(said, str):
            mode = MODES.get(said.lower(), mode)
        if f == ACQUIRE and mode is None:
            mode = WRITE  # a plain acquire in such a history is the exclusive one
        if op.outcome == Type.FAIL:
            seen = _refusal(op, f)
            return None if seen is None else (seen, holder_of(op), WRITE if f == UPGRADE else mode)
        return f, holder_of(op), mode

    def watches(self, op: Any) -> bool:
        return op[0] in (RENEW, BUSY, NOT_HELD)

    def step(self, state: Any, op: Any) -> Any:
        f, who, mode = op
        writer, readers = state
        if f in (ACQUIRE, BUSY):
            free = writer is None and (mode == READ or not readers)
            if f == BUSY:
                return None if free else state
            if not free:
                return None
            return (who, readers) if mode == WRITE else (None, _changed(readers, who, 1))
        writes = writer == who and mode != READ
        reads = mode != WRITE and _count(readers, who) > 0
        if f == NOT_HELD:
            return None if writes or reads else state
        if f == DOWNGRADE:
            return (None, _changed(readers, who, 1)) if writer == who else None
        if f == UPGRADE:
            alone = writer is None and readers == {(who, 1)}
            return (who, frozenset()) if alone else None
        if not (writes or reads):
            return None
        if f == RENEW:
            return state
        return (None, readers) if writes else (None, _changed(readers, who, -1))
