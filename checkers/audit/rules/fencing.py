"""Rules about the resource: can an owner whose lease is over still write.

    UNFENCED_WRITE.findings(facts)

Traps: a lock of the transaction that writes needs no token, as it cannot be over before the write.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule


def _unfenced(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("write"):
        if fact.get("lease") == "ttl" and fact.get("freed") and not fact.get("fenced"):
            yield Hit(
                fact,
                f"a write under the lock of line {fact.get('grant_line')} carries no token or "
                "version: it is accepted even if the lease is over",
            )


UNFENCED_WRITE = Rule(
    id="A-FENCE-1",
    kind="K11",
    dimension=Dimension.FENCING,
    severity=Severity.MEDIUM,
    title="a protected write carries no token",
    interleaving=(
        "A takes the lock and is paused just before its write",
        "the lease ends; B takes the lock and writes",
        "A goes on: its old write overwrites B's",
    ),
    fixes={
        "": "send a token that grows with each grant and let the resource refuse older ones: "
        "UPDATE ... SET ..., fence = :token WHERE id = :id AND fence < :token, and check that one "
        "row was changed",
    },
    check=_unfenced,
)
