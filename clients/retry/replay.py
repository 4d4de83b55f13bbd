"""Decides recorded contexts again: the same decider must say the same, another may be tried.

    replayed = replay(read_records("retry.jsonl"), rules)

Settings that a deployment has chosen stand in the record and are used again.
A context whose digest does not fit its record was changed after it was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from clients.retry.facts import DEFAULTS, Settings
from clients.retry.gate import Asked
from clients.retry.model import Context, context_from
from clients.retry.record import digest

LISTED_MAX = 20
Decide = Callable[[Context, Settings], Asked]


def replay(records: Iterable[dict[str, Any]], decide: Decide) -> dict[str, Any]:
    """Counts of same and different decisions, and the first differences; JSON-able."""
    counts: Counter[str] = Counter(same=0, different=0, drifted=0, changed=0)
    sources: Counter[str] = Counter()
    differences: list[dict[str, Any]] = []
    for record in records:
        if record["kind"] != "decision":
            continue
        if digest(record["context"]) != record["digest"]:
            counts["changed"] += 1
            continue
        settings = Settings(**record["settings"]) if "settings" in record else DEFAULTS
        asked = decide(context_from(_full(record["context"])), settings)
        sources[asked.source] += 1
        now, then = asked.decision.as_dict(), record["decision"]
        if now == then:
            counts["same"] += 1
            continue
        counts["different"] += 1
        # The rules are deterministic: from themselves they must not differ.
        counts["drifted"] += asked.source == "rules" == record["source"]
        if len(differences) < LISTED_MAX:
            differences.append(
                {"id": record["id"], "attempt": record["attempt"], "then": then, "now": now}
            )
    return {
        "schema": "lockhavoc.retry-replay/1",
        **counts,
        "sources": dict(sources),
        "differences": differences,
    }


def _full(context: dict[str, Any]) -> dict[str, Any]:
    # Records leave out what was null; these three must be said all the same.
    empty = dict.fromkeys(("current_holder_id", "lock_ttl_seconds", "error_code"))
    return empty | context
