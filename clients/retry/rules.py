"""The deterministic decider: nine rules, no clock, no global randomness.

    decide(context)            # the same context (with its seed) always gives the same decision

Rules: 1 the holder's lease is over or about to end · 2 FIFO · 3 share of the budget · 4 the same
failure again and again · 5 deadlock · 6 floor · 7 hard budget · 8 failures that waiting does not
cure, and unknown outcomes · 9 quorum, expired lease, stale token.  3, 5, 7 and the first half of
8 leave no choice and stand in ``bounds``, where they bind every decider.

Back-off is decorrelated jitter after Brooker, "Exponential Backoff And Jitter":
``min(cap, uniform(base, 3 * previous))``.
"""

from __future__ import annotations

import hashlib
from struct import unpack
from typing import NamedTuple

from clients.retry.bounds import (
    enforce,
    escalate,
    explain,
    fifo_delay_ms,
    forced,
    risk,
    step_ms,
    within_ms,
)
from clients.retry.facts import DEFAULTS, Facts, Settings
from clients.retry.failures import Kind
from clients.retry.model import Context, Decision, Strategy

CROWD_MAX = 9  # waiters that are taken as a reason for being refused
LEAST_CAP_MS = 1_000

CHECK_OWNER = (
    "the outcome is unknown and this client may hold the lock: read its owner first; if it is"
    " this client, verify the lease and go on or release it, else wait out one lease"
)
INSTRUCTIONS = {
    Kind.UNKNOWN: CHECK_OWNER,
    Kind.QUORUM: "count no partial grant: release on every server that may have granted, then ask"
    " all servers anew",
    Kind.EXPIRED: "discard this grant: the lease ended before the acquisition did; ask with a new"
    " owner and a longer TTL, and renew before two thirds of it",
    Kind.STALE: "stop all writes under the old token; a newer holder exists, so get a new grant and"
    " its token before the next write",
}


def decide(context: Context, settings: Settings = DEFAULTS) -> Decision:
    """The decision on one context; within all bounds."""
    facts = Facts.of(context, settings)
    decision = forced(context, facts, settings) or _repeated(context, facts, settings)
    if decision is not None:
        return decision
    return _retry(context, facts, settings)


def _repeated(context: Context, facts: Facts, settings: Settings) -> Decision | None:
    busy = facts.kind is Kind.BUSY
    most = settings.busy_failures_max if busy else settings.same_failure_max
    if busy:
        most *= 1 + min(facts.waiters, CROWD_MAX)  # in a crowd, being refused is the normal case
    if not context.failure_reason_unchanged or context.consecutive_failures < most:
        return None
    if facts.constraints.never_escalate or facts.imminent:
        return None
    if busy and context.queue_position is not None and context.queue_position > 1:
        return None  # others are before it: being refused is what a queue is
    says = (
        f"{context.consecutive_failures} failures in a row for the same reason"
        f" ({context.failure_reason[:120].rstrip('.')!r}), the threshold is {most}"
    )
    return escalate(
        context,
        facts,
        settings,
        (4, "same failure"),
        says,
        instruction=_instruction(context, facts),
    )


def _instruction(context: Context, facts: Facts) -> str | None:
    if context.requester_id == context.current_holder_id:
        return CHECK_OWNER
    return INSTRUCTIONS.get(facts.kind)


def _retry(context: Context, facts: Facts, settings: Settings) -> Decision:
    number, name, says, delay_ms, strategy = _choice(context, facts, settings)
    bounded = within_ms(delay_ms, facts)
    if bounded > delay_ms:
        says += f", raised to the floor of {facts.floor_ms} ms"
    elif bounded < delay_ms:
        says += f", cut to the {bounded} ms that are allowed"
    return Decision(
        decision="retry",
        retry_after_ms=bounded,
        backoff_strategy=strategy,
        lease_renewal_instruction=_instruction(context, facts),
        starvation_risk=risk(context, facts, settings),
        deadlock_detected=False,
        explanation=explain(number, name, says, facts),
    )


class _Choice(NamedTuple):
    rule: int
    name: str
    says: str
    delay_ms: int
    strategy: Strategy | None


def _choice(context: Context, facts: Facts, settings: Settings) -> _Choice:
    drift_ms = int(
        min(float(context.lock_ttl_seconds or 0), 86_400.0) * 1000 * settings.drift_share
    )
    special = _unknown(context, facts, settings, drift_ms) or _rule_9(context, facts, settings)
    if facts.fifo:
        place_ms = step_ms(context, facts, settings)
        says = f"place {facts.place} in a FIFO queue, {place_ms} ms a place"
        delay_ms = fifo_delay_ms(context, facts, settings)
        if context.release_notice:
            delay_ms += _safety_net_ms(facts, settings, place_ms, drift_ms)
            says += ", word of the release comes or the lease ends"
        if special is None:
            return _Choice(2, "FIFO", says, delay_ms, "linear")
        delay_ms = max(delay_ms, special.delay_ms)
        return special._replace(
            says=f"{special.says}, {says}", delay_ms=delay_ms, strategy="linear"
        )
    if special is not None:
        return special
    left_ms = facts.lease_left_ms
    if left_ms is not None and left_ms + drift_ms <= 0:
        delay_ms = facts.floor_ms + _draws(context)[0] % facts.floor_ms
        says = (
            f"the holder's lease ended {-left_ms} ms ago, its clock drift is within {drift_ms} ms"
        )
        return _Choice(1, "lease over", says, delay_ms, "linear")
    if facts.imminent and left_ms is not None:
        delay_ms = max(left_ms + drift_ms, facts.floor_ms)
        if facts.waiters:
            # All of them know when the lease ends, and must not come at once.
            crowd_ms = facts.floor_ms * (1 + min(facts.waiters, CROWD_MAX))
            delay_ms += _draws(context)[0] % crowd_ms
        says = f"the holder's lease ends in {left_ms} ms, and {drift_ms} ms are added for drift"
        return _Choice(1, "lease ends soon", says, delay_ms, "linear")
    base_ms = max(facts.floor_ms, settings.base_ms)
    cap_ms = settings.cap_ms
    if context.lock_ttl_seconds:
        # A free lock must not lie idle for longer than a dead holder would have blocked it.
        ttl_ms = int(min(float(context.lock_ttl_seconds), 3_600.0) * 1000)
        cap_ms = min(cap_ms, max(LEAST_CAP_MS, ttl_ms))
    delay_ms = _decorrelated(context, base_ms, cap_ms)
    says = f"failure {context.consecutive_failures} ({facts.kind}), {facts.left_ms} ms are left"
    return _Choice(6, "back-off", says, delay_ms, "decorrelated-jitter")


def _safety_net_ms(facts: Facts, settings: Settings, place_ms: int, drift_ms: int) -> int:
    """Who is told of its turn asks by itself only in case that word was lost.

    To ask shortly before would be worse than needless: word that comes within the floor after an
    attempt has to wait.  No longer than to the end of the lease, when a lost release is over.
    """
    if facts.lease_left_ms is None:
        return place_ms
    return min(settings.cap_ms, max(0, facts.lease_left_ms) + drift_ms)


def _unknown(context: Context, facts: Facts, settings: Settings, drift_ms: int) -> _Choice | None:
    own = context.requester_id == context.current_holder_id
    if facts.kind is not Kind.UNKNOWN and not own:
        return None
    lease_ms = int(min(float(context.lock_ttl_seconds or 0), 86_400.0) * 1000)
    if own and facts.lease_left_ms is not None:
        lease_ms = max(facts.lease_left_ms, 0)
    wait_ms = max(lease_ms + drift_ms, settings.base_ms)
    says = f"this client may hold the lock itself, a lease of it ends within {wait_ms} ms"
    return _Choice(8, "unknown outcome", says, wait_ms, None)


def _rule_9(context: Context, facts: Facts, settings: Settings) -> _Choice | None:
    if facts.kind not in (Kind.QUORUM, Kind.EXPIRED, Kind.STALE):
        return None
    # An election takes seconds, a lost lease or token costs only a new request.
    base_ms = settings.base_ms * (5 if facts.kind is Kind.QUORUM else 1)
    delay_ms = _exponential(base_ms, context.consecutive_failures, settings.cap_ms)
    says = f"{facts.kind} after {context.consecutive_failures} failures"
    return _Choice(9, str(facts.kind), says, delay_ms, "exponential")


def _exponential(base_ms: int, failures: int, cap_ms: int) -> int:
    return min(cap_ms, base_ms << min(max(failures - 1, 0), 30))


def _decorrelated(context: Context, base_ms: int, cap_ms: int) -> int:
    previous = base_ms
    rounds = min(max(context.consecutive_failures, 1), DRAWS)
    if context.history and context.history[-1].retry_after_ms is not None:
        previous = max(base_ms, context.history[-1].retry_after_ms)
        rounds = 1
    for draw in _draws(context)[:rounds]:
        previous = min(cap_ms, base_ms + draw % (max(3 * previous - base_ms, 0) + 1))
    return previous


DRAWS = 16


def _draws(context: Context) -> tuple[int, ...]:
    """Random numbers below 2**32 for this seed, lock, requester and attempt.

    A digest instead of a generator: seeding one takes as long as all the rest of a decision.
    """
    name = f"{context.seed or 0}\0{context.lock_name}\0{context.requester_id}"
    digest = hashlib.sha512(f"{name}\0{context.consecutive_failures}".encode(errors="replace"))
    return unpack(f">{DRAWS}I", digest.digest())


def default_backoff(
    context: Context, facts: Facts, settings: Settings, why: str
) -> tuple[Decision, list[str]]:
    """What is done where an outside decider gave no usable answer: exponential, within bounds."""
    delay_ms = _exponential(settings.base_ms, context.consecutive_failures, settings.cap_ms)
    suggested = Decision(
        decision="retry",
        retry_after_ms=delay_ms,
        backoff_strategy="exponential",
        lease_renewal_instruction=_instruction(context, facts),
        starvation_risk=risk(context, facts, settings),
        deadlock_detected=False,
        explanation=explain(7, "default back-off", why, facts),
    )
    return enforce(context, facts, suggested, settings)
