"""Rules about the servers' own settings.

    EVICTION.findings(facts)

Traps: a Redis that only caches may evict, and beside one that keeps everything it probably only
caches.  With code at hand the rule wants to see a Redis lock in it; a configuration that was given
alone is judged as that of a store of locks.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule


def _eviction(facts: Facts) -> Iterator[Hit]:
    locks = any(f.get("family") == "redis" for f in facts.of("lock"))
    if facts.code_files and not locks:
        return
    limits = {
        (f.place.path, f.scope): str(f.get("value"))
        for f in facts.of("setting")
        if f.get("format") == "redis" and f.get("name") == "maxmemory"
    }
    last = {
        (f.place.path, f.scope): f
        for f in facts.of("setting")
        if f.get("format") == "redis" and f.get("name") == "maxmemory-policy"
    }
    if any(str(fact.get("value")).lower() == "noeviction" for fact in last.values()):
        return  # of several servers one keeps everything: that may be the one with the locks
    for path, fact in last.items():
        policy = str(fact.get("value")).lower()
        bounded = limits.get(path, "0") not in ("0", "0b")
        yield Hit(
            fact,
            f"{policy} lets a full server throw lock keys away"
            + ("" if bounded else " (as soon as maxmemory is set)"),
            severity=Severity.HIGH if bounded else Severity.MEDIUM,
        )


EVICTION = Rule(
    id="A-CFG-1",
    kind="K13",
    dimension=Dimension.RECOVERY,
    severity=Severity.HIGH,
    title="the store may evict lock keys",
    interleaving=(
        "A takes the lock",
        "other keys fill the memory; the server evicts the lock's key",
        "B takes the lock; A is still inside",
    ),
    fixes={"": "maxmemory-policy noeviction on a server that keeps locks and no cache"},
    check=_eviction,
)


def _pooler(facts: Facts) -> Iterator[Hit]:
    held = [
        f for f in facts.of("lock") if f.get("family") == "postgres" and f.get("lease") == "session"
    ]
    if not held and facts.code_files:
        return
    for fact in facts.of("setting"):
        if fact.get("format") != "pgbouncer" or fact.get("name") != "pool_mode":
            continue
        if fact.get("value") in ("transaction", "statement") and held:
            yield Hit(
                fact,
                f"pool_mode {fact.get('value')} gives each transaction another session, and "
                f"{held[0].place} takes a lock of the session",
            )


POOLER = Rule(
    id="A-CFG-3",
    kind="K14",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.HIGH,
    title="a pooler or time limit that session locks do not survive",
    interleaving=(
        "A locks; the pooler gives A's server session to B",
        "B locks in the same session and gets it: session locks are re-entrant",
        "A unlocks in another session and is told false",
    ),
    fixes={"": "pool_mode = session for those who lock, or pg_advisory_xact_lock"},
    check=_pooler,
    also=(Dimension.RECOVERY,),
)
