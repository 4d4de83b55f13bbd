"""Rules about giving the lock back: on every way out, to the right server session, and for sure.

NO_FINALLY.findings(facts)
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.model import Dimension, Fact, Severity
from checkers.audit.rule import Facts, Hit, Rule

_LEAVES = {
    "": "an error before line {} leaves the lock taken: the release is not in a finally",
    "ruby": "an error before line {} leaves the lock taken: the release is not in an ensure",
    "go": "a return before line {} leaves the lock taken: the release is not deferred",
}


def _no_finally(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("grant"):
        if fact.get("freed") and not fact.get("protected") and fact.get("work"):
            if fact.get("lease") == "transaction":
                continue
            yield Hit(
                fact,
                _LEAVES.get(str(fact.get("language")), _LEAVES[""]).format(fact.get("free_line")),
            )


NO_FINALLY = Rule(
    id="A-REL-1",
    kind="K18",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="the release is not in a finally",
    interleaving=(
        "A takes the lock",
        "the work raises; the release is jumped over",
        "B waits for the whole lease, or for ever",
    ),
    fixes={
        "": "try: work, finally: release; or a with-block of a library that raises",
        "go": "defer the release in the line after the check of the error",
        "javascript": "try { work } finally { await lock.release() }",
        "java": "try { work } finally { lock.unlock(); }",
        "ruby": "begin, work, ensure, release; or the block form of the library",
    },
    check=_no_finally,
)


def _unused_unlock(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("release"):
        if fact.get("boolean") and fact.get("use") in ("dropped", "unchecked"):
            yield Hit(
                fact,
                "pg_advisory_unlock answers false, and no error, where this session does not hold "
                "the lock; nobody looks",
            )


UNUSED_UNLOCK = Rule(
    id="A-REL-2",
    kind="K14",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="the answer of an unlock is ignored",
    interleaving=(
        "A locks in session 1",
        "A unlocks in session 2 (a pool, a reconnect) and is told false",
        "session 1 holds the lock until it ends; B waits",
    ),
    fixes={
        "": "read the boolean (fetchone()[0]) and treat false as a lost lock",
        "sql": "IF NOT pg_advisory_unlock(key) THEN RAISE EXCEPTION 'lock was lost'; END IF;",
        "go": "scan the boolean: QueryRow(...).Scan(&unlocked), and treat false as a lost lock",
        "javascript": "read rows[0].pg_advisory_unlock and treat false as a lost lock",
        "java": "read the boolean of the row and treat false as a lost lock",
        "ruby": "read the boolean of the row and treat false as a lost lock",
    },
    check=_unused_unlock,
)


def _silenced(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("release"):
        if fact.get("silenced"):
            yield Hit(
                fact,
                "the error that says that the lock was lost before the work was done vanishes here",
            )


SILENCED_RELEASE = Rule(
    id="A-REL-4",
    kind="K08",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="the error of a release that was not ours is suppressed",
    interleaving=(
        "A's lease ends during its work; B takes the lock and works beside A",
        "A releases and is told that the lock is not its own",
        "the error is dropped: nobody learns that two were inside",
    ),
    fixes={
        "": "let it be seen: log it as a lost lock, count it, and check or undo what was written"
    },
    check=_silenced,
)


def _planned(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("grant"):
        if fact.get("planned"):
            yield Hit(
                fact,
                f"the lock function {fact.get('planned')}: the planner may lock rows that are not "
                "in the result, and nobody unlocks those",
            )


PLANNED_LOCK = Rule(
    id="A-REL-7",
    kind="K14",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.HIGH,
    title="the planner decides how often a lock function is called",
    interleaving=(
        "A asks for one row; the server locks several while it looks for it",
        "A unlocks the row that it got",
        "the other locks stay until A's session ends; B waits for them",
    ),
    fixes={
        "": "choose the row in a subquery with its own LIMIT (or a MATERIALIZED CTE), and lock in "
        "the SELECT around it"
    },
    check=_planned,
)


def _pooled(facts: Facts) -> Iterator[Hit]:
    by_file: dict[str, list[Fact]] = {}
    for fact in facts.of("grant", "release"):
        if fact.get("pooled") and fact.get("lease", "session") == "session":
            by_file.setdefault(fact.place.path, []).append(fact)
    for found in by_file.values():
        takes = {f.get("root"): f for f in found if f.kind == "grant"}
        frees = {f.get("root"): f for f in found if f.kind == "release"}
        for root, fact in sorted(frees.items()):
            if root not in takes and takes:
                yield Hit(
                    fact,
                    "unlocks on another connection of the pool than the one that locked (line "
                    f"{min(t.place.line for t in takes.values())}): the lock stays",
                )
        if not frees:
            for fact in takes.values():
                yield Hit(fact, "this session lock goes back to the pool with its connection")


POOLED_SESSION = Rule(
    id="A-REL-5",
    kind="K14",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.HIGH,
    title="a session lock is not pinned to one connection",
    interleaving=(
        "A borrows connection 1, locks, and gives it back to the pool",
        "B borrows connection 1: the session lock is re-entrant, so B gets it as well",
        "A unlocks on connection 2, which answers false; the lock stays on connection 1",
    ),
    fixes={
        "": "keep one connection from lock to unlock, or use pg_advisory_xact_lock in the "
        "transaction that does the work",
    },
    check=_pooled,
    also=(Dimension.IDENTITY,),
)
