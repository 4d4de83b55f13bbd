"""A lock that runs out: the lease, a model whose states know the time.

    Lease(ttl_ns=10_000_000)                     "safe": taken over only when free or run out
    Lease(ttl_ns=10_000_000, property="exact")   also: over at the TTL, not a moment later

Both say that the points at which operations take effect are real times, each inside its operation's
interval and none before the one before it.  A grant or renew at p runs out at p + TTL; taking over
at exactly that moment is legal.  *safe*: a lease that ran out may linger; renew and release stay
legal until somebody takes over.  *exact*: renew and release are legal only before it runs out.
*not-held* to the holder needs a lease that ran out; *busy* needs a holder (exact: one whose lease
runs).  ``expire`` is a lapse that the service reported: it needs a lease that ran out.

How an order of operations gets its times.  Under *safe* every condition is a lower bound on a
point, so taking each as early as possible is best, and a state is (holder, now, deadline).  Under
*exact* there are upper bounds too; the pairs (now, deadline) that are possible form a zone, as in
timed automata (Dill 1989; Bengtsson and Yi 2004), here with four numbers, because now has no upper
bound: time may always pass.  Less is better (safe) or a larger zone is better (exact): ``cost``
tells the engine, which drops what another configuration makes useless.

Traps.  Times are scaled by SCALE so that "before" can be "at most one unit less" and stay exact on
reals: it is right for up to SCALE operations.  TTL: ``value.ttl_ns`` of the operation, else the
model's; a renew keeps the TTL of its grant where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from checkers.models.base import (
    ACQUIRE,
    BUSY,
    NOT_HELD,
    RELEASE,
    RENEW,
    Model,
    integer,
    until_ns,
)
from checkers.models.mutex import FREE, is_holder, lock_call
from harness.core.errors import UserError
from harness.core.history import Interval, Type

SCALE = 1 << 32
INFINITE = 1 << 140
EXPIRE = "expire"
SAFE, EXACT = "safe", "exact"


class Lease(Model):
    """State: (holder, now, deadline ...), holder FREE or (owner, hold, ttl)."""

    name = "lease"
    costed = True

    def __init__(
        self, *, ttl_ns: int | None = None, property: str = SAFE, drift_ppm: int = 0
    ) -> None:
        if property not in (SAFE, EXACT):
            raise UserError(f"lease: property is {property!r}, it must be 'safe' or 'exact'")
        if not 0 <= drift_ppm < 1_000_000:
            raise UserError(f"lease: drift_ppm is {drift_ppm}, it must be in 0 .. 999999")
        if drift_ppm and property == EXACT:
            raise UserError("lease: 'exact' means exact clocks; use drift_ppm with 'safe'")
        self.ttl_ns = ttl_ns
        self.drift_ppm = drift_ppm
        self.exact = property == EXACT
        self.init = _zone(FREE, 0, 0, INFINITE, -INFINITE) if self.exact else (FREE, 0, 0)

    def prepare(self, op: Interval) -> Any:
        call = lock_call(op)
        if call is None:
            if op.invoke.f != EXPIRE or op.outcome == Type.FAIL:
                return None
            call = (EXPIRE, op.field("owner"), op.field("hold"))
        end_ns = op.return_ns if op.outcome != Type.INFO else until_ns(op)
        end = INFINITE if end_ns is None else end_ns * SCALE
        return (*call, op.call_ns * SCALE, end, self._ttl(op, call[0]))

    def _ttl(self, op: Interval, f: str) -> int | None:
        if f not in (ACQUIRE, RENEW):
            return None
        ttl_ns = integer(op.field("ttl_ns"))
        if ttl_ns is None and f == ACQUIRE:
            ttl_ns = self.ttl_ns
        if ttl_ns is None:
            if f == RENEW:
                return None
            raise UserError(
                f"acquire at index {op.invoke.index}: no ttl_ns in its value and none given to "
                "the lease model"
            )
        return ttl_ns * SCALE - ttl_ns * SCALE * self.drift_ppm // 1_000_000

    def step(self, state: Any, op: Any) -> Any:
        return self._step_exact(state, op) if self.exact else self._step_safe(state, op)

    def _step_safe(self, state: Any, op: Any) -> Any:
        f, owner, hold, call, end, ttl = op
        holder, now, deadline = state
        at = call if call > now else now
        mine = is_holder(holder, owner, hold)
        if (holder and f == ACQUIRE) or (mine and f in (NOT_HELD, EXPIRE)):
            at = max(at, deadline)
        elif not _allowed(f, holder, mine):
            return None
        if at > end:
            return None
        if f == ACQUIRE:
            return (owner, hold, ttl), at, at + ttl
        if f == RENEW:
            return holder, at, at + (holder[2] if ttl is None else ttl)
        if f in (RELEASE, EXPIRE):
            return FREE, at, 0
        return holder, at, deadline

    def _step_exact(self, state: Any, op: Any) -> Any:
        f, owner, hold, call, end, ttl = op
        holder, now_low, low, high, gap_low = state
        mine = is_holder(holder, owner, hold)
        gap_high = INFINITE  # bounds of point - deadline
        if (holder and f == ACQUIRE) or (mine and f in (NOT_HELD, EXPIRE)):
            gap_low = max(gap_low, 0)
        elif not _allowed(f, holder, mine):
            return None
        elif (mine and f in (RELEASE, RENEW)) or f == BUSY:
            gap_high = -1
        point_low, point_high = max(call, now_low), end
        if holder:
            point_low = max(point_low, low + gap_low)
            point_high = min(point_high, high + gap_high)
            low = max(low, point_low - gap_high)
            high = min(high, point_high - gap_low)
            gap_low = max(gap_low, point_low - high)
            if low > high or gap_low > gap_high:
                return None
        if point_low > point_high:
            return None
        if f in (ACQUIRE, RENEW):
            if f == ACQUIRE:
                holder = (owner, hold, ttl)
            lasts = holder[2] if ttl is None else ttl
            return _zone(holder, point_low, point_low + lasts, point_high + lasts, -lasts)
        if f in (RELEASE, EXPIRE):
            return _zone(FREE, point_low, 0, INFINITE, -INFINITE)
        return _zone(holder, point_low, low, high, gap_low)

    def cost(self, state: Any) -> tuple[Hashable, tuple[float, ...]]:
        if self.exact:
            holder, now_low, low, high, gap_low = state
            return holder, (now_low, low, -high, gap_low)
        return state[0], state[1:]


def _allowed(f: str, holder: Any, mine: bool) -> bool:
    """Whether ``f`` is legal at all, apart from deadlines."""
    if f in (RELEASE, RENEW, EXPIRE):
        return mine
    if f == BUSY:
        return bool(holder)
    return True  # acquire of a free lock; not-held to one who does not hold


def _zone(holder: Any, now_low: int, low: int, high: int, gap_low: int) -> tuple[Any, ...]:
    """Possible (now, deadline): now >= now_low, deadline in [low, high], now - deadline >= gap."""
    return holder, now_low, low, high, gap_low
