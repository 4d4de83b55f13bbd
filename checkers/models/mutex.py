"""Locks with one holder: mutex, reentrant mutex, fenced mutex.

Identity is ``value.owner``, else the process; a hold id (fresh per acquire attempt, named by its
release and renews) makes it exact: where the holder and the caller both have one, only that counts.

    Mutex:      free --acquire--> held by the caller --release--> free;  renew needs the holder
    Reentrant:  counts, by owner (hold ids are per attempt, so they don't say who nests)
    Fenced:     mutex, and the token of a grant is greater than all earlier ones

A refusal that observed the state is a guard: *busy* needs somebody who holds, *not-held* needs
that the caller doesn't.  A plain ``fail`` says nothing.

Trap: an acquire of unknown outcome that took effect used up a token nobody knows.  The least it
can have been is one more than the last, and less is never worse here, since tokens are only ever
compared with "greater"; a token given later on a release or renew of that hold pins it down.
"""

from __future__ import annotations

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
from harness.core.history import Interval, Type

FREE: tuple[Any, ...] = ()


def is_holder(state: tuple[Any, ...], owner: Any, hold: Any) -> bool:
    """Whether (owner, hold) is who ``state`` says; hold ids decide where both sides have one."""
    if not state:
        return False
    if hold is not None and state[1] is not None:
        return bool(hold == state[1])
    return bool(owner == state[0])


def lock_call(op: Interval) -> tuple[str, Any, Any] | None:
    """(what, owner, hold) of a lock operation; ``what`` is the observation for a refusal."""
    f = LOCK_F.get(op.invoke.f)
    if f is None:
        return None
    if op.outcome == Type.FAIL:
        seen = observed(op)
        if (seen == BUSY) != (f == ACQUIRE) or seen not in (BUSY, NOT_HELD):
            return None
        f = seen
    return f, owner_of(op), hold_of(op)


class Mutex(Model):
    """One holder at a time; not reentrant.  State: FREE or (owner, hold)."""

    name = "mutex"
    init = FREE

    def prepare(self, op: Interval) -> Any:
        return lock_call(op)

    def watches(self, op: Any) -> bool:
        return op[0] in (RENEW, BUSY, NOT_HELD)

    def step(self, state: Any, op: Any) -> Any:
        f, owner, hold = op
        if f == ACQUIRE:
            return None if state else (owner, hold)
        if f == RELEASE:
            return FREE if is_holder(state, owner, hold) else None
        if f == RENEW:
            return state if is_holder(state, owner, hold) else None
        if f == BUSY:
            return state or None
        return None if is_holder(state, owner, hold) else state


class Reentrant(Model):
    """A mutex that its owner may acquire again, up to ``limit`` times in all (None: any number).

    State: FREE or (owner, count).
    """

    name = "reentrant"
    init = FREE

    def __init__(self, *, limit: int | None = None) -> None:
        self.limit = limit

    def prepare(self, op: Interval) -> Any:
        call = lock_call(op)
        return None if call is None else call[:2]

    def watches(self, op: Any) -> bool:
        return op[0] in (RENEW, BUSY, NOT_HELD)

    def step(self, state: Any, op: Any) -> Any:
        f, owner = op
        mine = bool(state) and state[0] == owner
        full = bool(state) and (not mine or state[1] == self.limit)
        if f == ACQUIRE:
            if full:
                return None
            return (owner, state[1] + 1) if mine else (owner, 1)
        if f == BUSY:
            return state if full else None
        if f == NOT_HELD:
            return None if mine else state
        if not mine:
            return None
        if f == RENEW:
            return state
        return (owner, state[1] - 1) if state[1] > 1 else FREE


class Fenced(Model):
    """A mutex whose grants carry ever greater tokens.  State: (holder, greatest, current).

    ``greatest`` is the least that the greatest token so far can be, None for "any";
    ``current`` is the holder's token, or None if it isn't known (or nobody holds).
    """

    name = "fenced"
    init: Any = (FREE, None, None)

    def prepare(self, op: Interval) -> Any:
        call = lock_call(op)
        if call is None:
            return None
        known = op.outcome == Type.OK or call[0] != ACQUIRE
        return (*call, integer(op.field("token")) if known else None, op.outcome == Type.INFO)

    def watches(self, op: Any) -> bool:
        return op[0] in (BUSY, NOT_HELD)  # a renew may tell an unknown token

    def step(self, state: Any, op: Any) -> Any:
        f, owner, hold, token, unknown = op
        holder, greatest, current = state
        if f == ACQUIRE:
            if holder:
                return None
            if unknown:
                return ((owner, hold), None if greatest is None else greatest + 1, None)
            if token is None or (greatest is not None and token <= greatest):
                return None
            return ((owner, hold), token, token)
        mine = is_holder(holder, owner, hold)
        if f == BUSY:
            return state if holder else None
        if f == NOT_HELD:
            return None if mine else state
        if not mine:
            return None
        if token is not None and token != current:
            if current is not None or (greatest is not None and token < greatest):
                return None
            greatest = current = token
        return (FREE, greatest, None) if f == RELEASE else (holder, greatest, current)
