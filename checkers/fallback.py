"""From a monitor to the general engine: who decided, and why.

    verdict = settle(monitor_verdict, intervals, "mutex", {})

A monitor that finds one of its assumptions broken on some keys says so; this asks the general
engine about just those keys.  The verdict that comes back says who decided
(``stats["decided_by"]``) and stays UNKNOWN if the engine ran out of its budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checkers.engine import EngineResult, check
from checkers.models import make
from checkers.monitors.span import Verdict, at_key, ms
from harness.core.history import Interval
from harness.core.result import Anomaly, Side, Valid


def settle(
    verdict: Verdict,
    intervals: Iterable[Interval],
    model: str,
    options: Mapping[str, Any],
    *,
    side: Side = Side.SERVICE,
) -> Verdict:
    """``verdict`` with the keys in doubt decided by the engine."""
    if verdict.exact:
        verdict.stats["decided_by"] = f"monitor {verdict.model}"
        return verdict
    doubtful = set(verdict.unsure)
    kept = [op for op in intervals if op.invoke.key in doubtful]
    outcome = check(kept, make(model, **options))
    verdict.stats["decided_by"] = f"general engine, {outcome.strategy} ({verdict.why})"
    if outcome.valid is Valid.FALSE:
        verdict.add(_anomaly(outcome, model, side))
    elif outcome.valid is Valid.TRUE:
        verdict.exact = True
        if verdict.valid is Valid.UNKNOWN:
            verdict.valid = Valid.TRUE
    else:
        verdict.why += f"; the general engine: {outcome.why}"
    return verdict


def _anomaly(outcome: EngineResult, model: str, side: Side) -> Anomaly:
    """What the engine found, as an anomaly: the operation that no order reaches, and those that
    are in its way."""
    found = outcome.witness
    if found is None:
        return Anomaly(kind=f"not-{model}", side=side, says=outcome.why, key=outcome.key)
    blocked = found.blocked
    others = [*found.prefix[-2:], *found.open[:2]]
    ops = [(op.complete or op.invoke).index for op in [*others, blocked]]
    done = blocked.complete or blocked.invoke
    return Anomaly(
        kind=f"not-{model}",
        side=side,
        ops=list(dict.fromkeys(ops)),
        says=at_key(outcome.key)
        + f"no legal order of the operations has room for the {blocked.invoke.f} of process "
        f"{blocked.invoke.process} that ended at {ms(done.time)}",
        key=outcome.key,
        legal_if=f"that {blocked.invoke.f} had been refused",
    )
