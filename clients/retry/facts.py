"""What a decision rests on, worked out once from the context: exact, in milliseconds.

    facts = Facts.of(context)
    facts.left_ms, facts.floor_ms, facts.imminent

Whole milliseconds are rounded towards caution: what is left of a budget down, a floor up.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from decimal import Context as Arithmetic

from clients.retry.constraints import NOTHING, Constraints, parse
from clients.retry.failures import Kind, kind_of
from clients.retry.graph import cycle_members
from clients.retry.model import FIFO, Context

# Enough digits for any two numbers of a context; nothing is trapped, nothing is rounded.
EXACT = Arithmetic(prec=1_000, traps=[])
SPENT_SHARE = Decimal("0.8")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a deployment may choose.  Times in ms."""

    floor_ms: int = 50
    base_ms: int = 100  # first back-off
    cap_ms: int = 10_000  # longest back-off
    drift_share: float = 0.01  # by which clocks of holder and service may differ, of the TTL
    imminent_ms: int = 500  # a lease that ends this soon is worth waiting for
    same_failure_max: int = 5  # then a failure that waiting does not cure is escalated
    busy_failures_max: int = 10  # the same where the lock is just held by somebody


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Facts:
    """See the module; ``lease_left_ms`` is None where the end of the holder's lease is unknown."""

    kind: Kind
    constraints: Constraints
    floor_ms: int
    longest_ms: int | None
    left_ms: int
    over_share: bool
    spent: bool
    retries_max: int | None
    retries_spent: bool
    on_call_due: bool
    on_call_left_ms: int | None
    waiters: int
    place: int
    fifo: bool
    lease_left_ms: int | None
    imminent: bool
    cycle: frozenset[str]

    @staticmethod
    def of(context: Context, settings: Settings = DEFAULTS) -> Facts:
        """All facts of one context."""
        said = parse(tuple(context.constraints)) if context.constraints else NOTHING
        elapsed, budget = context.elapsed_wait_seconds, context.max_wait_budget_seconds
        left_ms = _down(EXACT.multiply(EXACT.subtract(budget, elapsed), Decimal(1000)))
        floor_ms = settings.floor_ms
        if context.latency_floor_ms or said.shortest_ms:
            floor_ms = max(floor_ms, _up(context.latency_floor_ms), _up(said.shortest_ms))
        limits = [n for n in (context.max_retries, said.max_retries) if n is not None]
        on_call_left = None
        if said.escalate_after_ms is not None:
            on_call_left = _down(
                EXACT.subtract(said.escalate_after_ms, EXACT.multiply(elapsed, Decimal(1000)))
            )
        waiters = int(context.other_waiters_exist)
        lease_left = _lease_left_ms(context)
        return Facts(
            kind=kind_of(context.failure_reason, context.error_code),
            constraints=said,
            floor_ms=floor_ms,
            longest_ms=None if said.longest_ms is None else max(floor_ms, _down(said.longest_ms)),
            left_ms=left_ms,
            over_share=elapsed > EXACT.multiply(budget, SPENT_SHARE),
            spent=left_ms < floor_ms,
            retries_max=min(limits) if limits else None,
            # The first attempt is no retry.
            retries_spent=bool(limits) and context.consecutive_failures > min(limits),
            on_call_due=on_call_left is not None and on_call_left <= 0,
            on_call_left_ms=on_call_left,
            waiters=waiters,
            place=context.queue_position or waiters + 1,
            fifo=(context.fairness_policy == FIFO or said.fifo)
            and (waiters > 0 or (context.queue_position or 1) > 1),
            lease_left_ms=lease_left,
            imminent=lease_left is not None and lease_left <= min(settings.imminent_ms, left_ms),
            cycle=_cycle(context),
        )


def _lease_left_ms(context: Context) -> int | None:
    ttl, age = context.lock_ttl_seconds, context.holder_acquired_ago_seconds
    if not ttl or age is None:
        return None
    return _up(EXACT.multiply(EXACT.subtract(ttl, age), Decimal(1000)))


def _cycle(context: Context) -> frozenset[str]:
    if not context.wait_for:
        return frozenset()
    edges = list(context.wait_for)
    holder = context.current_holder_id
    # That the requester holds it already is no proof of a cycle: an answer may have been lost.
    if holder is not None and holder != context.requester_id:
        edges.append([context.requester_id, holder])
    return frozenset(cycle_members(edges, context.requester_id))


_BOUND_MS = Decimal(10) ** 15  # thirty thousand years: beyond, all waits are alike


def _down(value: Decimal) -> int:
    return int(_bounded(value).to_integral_value(ROUND_FLOOR, EXACT))


def _up(value: Decimal | None) -> int:
    return int(_bounded(value or Decimal(0)).to_integral_value(ROUND_CEILING, EXACT))


def _bounded(value: Decimal) -> Decimal:
    return max(-_BOUND_MS, min(_BOUND_MS, value))
