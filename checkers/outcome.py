"""Results in the forms that several checkers give: it does not apply; what the anomalies rule.

    return unapplied(self, "nobody died", stats)
    return ruled(self, "nobody was refused because of one", stats, anomalies)

Trap: a result that does not apply is UNKNOWN and says ``applies: False``, so that nobody takes it
for a doubt; one that should apply and saw nothing must not use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from harness.core.limits import ANOMALIES_MAX
from harness.core.result import Anomaly, Result, Valid


class Named(Protocol):
    """What a result takes from its checker."""

    name: str
    safety: bool


def result(
    checker: Named,
    valid: Valid,
    says: str,
    stats: Mapping[str, Any],
    anomalies: Sequence[Anomaly] = (),
) -> Result:
    """The result of ``checker``, with as many anomalies as are listed."""
    return Result(
        checker=checker.name,
        valid=valid,
        says=says,
        anomalies=list(anomalies[:ANOMALIES_MAX]),
        stats=dict(stats),
        safety=checker.safety,
    )


def unapplied(checker: Named, says: str, stats: Mapping[str, Any]) -> Result:
    """The result of a checker that has nothing to do with this run."""
    return result(checker, Valid.UNKNOWN, says, {**stats, "applies": False})


def ruled(
    checker: Named, says: str, stats: Mapping[str, Any], anomalies: Sequence[Anomaly]
) -> Result:
    """FALSE by the first of the anomalies, with their number; TRUE and ``says`` without any."""
    if anomalies:
        return result(checker, Valid.FALSE, _with_count(anomalies), stats, anomalies)
    return result(checker, Valid.TRUE, says, stats)


def _with_count(anomalies: Sequence[Anomaly]) -> str:
    """What the first says, and how many there are besides."""
    more = len(anomalies) - 1
    return anomalies[0].says + (f" (and {more} more)" if more else "")
