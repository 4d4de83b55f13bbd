"""What no decider can override: called on every decision, whoever made it.

    decision, notes = enforce(context, facts, suggested, settings)

Order: deadlock, budget (time, retries, the deadline for on-call), failures that waiting cannot
cure, the share of the budget; then the delay is brought between floor and end, and under FIFO it
is made linear and no shorter than the place in the queue allows.
"""

from __future__ import annotations

from clients.retry.facts import Facts, Settings
from clients.retry.failures import CURELESS, Kind
from clients.retry.model import Context, Decision, Risk

EARLY_SHARE = 0.9  # of the time that those in front are expected to take
RULE = "rule {number} ({name}): {facts}"


def explain(number: int, name: str, says: str, facts: Facts) -> str:
    """One sentence: the rule, the facts, and the constraints that were not understood."""
    sentence = RULE.format(number=number, name=name, facts=says)
    if facts.constraints.unknown:
        shown = ", ".join(repr(text[:80].rstrip(".")) for text in facts.constraints.unknown[:5])
        more = len(facts.constraints.unknown) - 5
        sentence += f"; not understood and so not applied: {shown}"
        sentence += f" and {more} more" if more > 0 else ""
    return sentence + "."


def risk(context: Context, facts: Facts, settings: Settings) -> Risk:
    """How likely it is that the requester starves: low, medium or high."""
    budget = context.max_wait_budget_seconds
    half = context.elapsed_wait_seconds * 2 > budget
    unordered = not facts.fifo and facts.waiters > 0
    if facts.over_share or facts.spent or (unordered and half):
        return "high"
    if half or unordered or context.consecutive_failures >= settings.same_failure_max:
        return "medium"
    return "low"


def escalate(
    context: Context,
    facts: Facts,
    settings: Settings,
    rule: tuple[int, str],
    says: str,
    *,
    instruction: str | None = None,
) -> Decision:
    """An escalation with its reason."""
    return Decision(
        decision="escalate",
        escalation_reason=says,
        lease_renewal_instruction=instruction,
        starvation_risk=risk(context, facts, settings),
        deadlock_detected=bool(facts.cycle) or facts.kind is Kind.DEADLOCK,
        explanation=explain(*rule, says, facts),
    )


def forced(context: Context, facts: Facts, settings: Settings) -> Decision | None:
    """The decision where only one is possible; None where there is a choice."""
    if facts.cycle:
        members = sorted(facts.cycle)
        shown = ", ".join(repr(name) for name in members[:8])
        shown += f" and {len(members) - 8} more" if len(members) > 8 else ""
        says = f"the clients {shown} wait for each other; halt all of them until it is resolved"
        return escalate(context, facts, settings, (5, "deadlock"), says)
    if facts.kind is Kind.DEADLOCK:
        says = "the lock service reports a deadlock; halt the clients in it until it is resolved"
        return escalate(context, facts, settings, (5, "deadlock"), says)
    says = _budget(context, facts)
    if says:
        return escalate(context, facts, settings, (7, "budget"), says)
    return _cureless(context, facts, settings) or _over_share(context, facts, settings)


def _budget(context: Context, facts: Facts) -> str:
    if facts.spent:
        return (
            f"{context.elapsed_wait_seconds:f} s of {context.max_wait_budget_seconds:f} s are spent"
            f" and a further wait takes at least {facts.floor_ms} ms"
        )
    if facts.retries_spent:
        return f"{context.consecutive_failures} failures use up the {facts.retries_max} retries"
    if facts.on_call_due:
        return (
            f"{context.elapsed_wait_seconds:f} s have passed and on-call is due after"
            f" {(facts.constraints.escalate_after_ms or 0) / 1000:f} s"
        )
    return ""


def _cureless(context: Context, facts: Facts, settings: Settings) -> Decision | None:
    if facts.kind not in CURELESS:
        return None
    says = f"waiting does not cure {context.failure_reason[:120].rstrip('.')!r} ({facts.kind})"
    if facts.kind is Kind.DOWN:
        return escalate(context, facts, settings, (8, "no cure"), says)
    return Decision(
        decision="abandon",
        starvation_risk="low",
        deadlock_detected=False,
        explanation=explain(8, "no cure", says, facts),
    )


def _over_share(context: Context, facts: Facts, settings: Settings) -> Decision | None:
    if not facts.over_share or facts.imminent:
        return None
    says = (
        f"{context.elapsed_wait_seconds:f} s are over 80 % of {context.max_wait_budget_seconds:f} s"
        " and no release is imminent"
    )
    return escalate(context, facts, settings, (3, "budget share"), says)


def step_ms(context: Context, facts: Facts, settings: Settings) -> int:
    """How long one place in the queue takes, in ms: as observed, else a guess from the TTL."""
    if context.observed_hold_seconds:
        observed = int(min(float(context.observed_hold_seconds), 86_400.0) * 1000)
        return max(facts.floor_ms // 2, observed)
    if context.lock_ttl_seconds:
        return max(
            facts.floor_ms,
            min(settings.base_ms, int(min(float(context.lock_ttl_seconds), 86_400.0) * 100)),
        )
    return max(facts.floor_ms, settings.base_ms)


def fifo_delay_ms(context: Context, facts: Facts, settings: Settings) -> int:
    """The next waits for the end of this hold as far as it is known, each behind it a hold more."""
    first_ms, each_ms = facts.floor_ms, step_ms(context, facts, settings)
    if context.observed_hold_seconds and context.holder_acquired_ago_seconds is not None:
        age_ms = int(min(float(context.holder_acquired_ago_seconds), 86_400.0) * 1000)
        first_ms = max(first_ms, each_ms - age_ms - facts.floor_ms)
        # Who oversleeps its turn leaves the lock idle; who wakes early only asks once more.
        each_ms = int(each_ms * EARLY_SHARE)
    return first_ms + (facts.place - 1) * each_ms


def within_ms(delay_ms: int, facts: Facts) -> int:
    """Not over what is left of budget, deadline and longest delay; never under the floor."""
    for bound in (facts.longest_ms, facts.on_call_left_ms):
        if bound is not None:
            delay_ms = min(delay_ms, bound)
    return min(max(delay_ms, facts.floor_ms), facts.left_ms)


def enforce(
    context: Context, facts: Facts, suggested: Decision, settings: Settings
) -> tuple[Decision, list[str]]:
    """The decision that may be carried out, and what had to be changed for it."""
    must = forced(context, facts, settings)
    if must is not None:
        if must.decision == "escalate" and suggested.decision == "escalate":
            # The same outcome: the decider's own words stay, but a cycle is not its to deny.
            cycle = must.deadlock_detected or suggested.deadlock_detected
            return suggested.model_copy(update={"deadlock_detected": cycle}), []
        if suggested.decision == "retry" or facts.spent or must.decision == "escalate":
            return must, [f"{suggested.decision} was overridden: {must.explanation}"]
        return suggested, []
    if suggested.deadlock_detected and suggested.decision != "escalate":
        says = "the decider reports a deadlock"
        changed = escalate(context, facts, settings, (5, "deadlock"), says)
        return changed.model_copy(update={"deadlock_detected": True}), [says]
    if suggested.decision != "retry":
        return suggested, []
    notes = []
    delay_ms = suggested.retry_after_ms or 0
    strategy = suggested.backoff_strategy
    if facts.fifo:
        least = fifo_delay_ms(context, facts, settings)
        if delay_ms < least:
            delay_ms = least
            notes.append(f"place {facts.place} in the queue: at least {least} ms")
        if strategy != "linear":
            strategy = "linear"
            notes.append("FIFO with waiters: linear")
    bounded = within_ms(delay_ms, facts)
    if bounded != delay_ms:
        notes.append(f"{delay_ms} ms was brought into its bounds: {bounded} ms")
    if not notes:
        return suggested, notes
    return suggested.model_copy(
        update={"retry_after_ms": bounded, "backoff_strategy": strategy}
    ), notes
