"""Rules about what follows a death or a wait: takeover, clean-up, reading again.

UNSAFE_TAKEOVER.findings(facts)
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule


def _takeover(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("takeover"):
        if fact.get("what") == "pid":
            yield Hit(
                fact,
                "a process number says nothing on another host or in another container, and is "
                f"given again; the lock is removed by it in line {fact.get('line')}",
            )
        else:
            yield Hit(
                fact,
                f"judged stale in line {fact.get('line')}, removed here: in between another may "
                "have taken it over",
            )


UNSAFE_TAKEOVER = Rule(
    id="A-REC-1",
    kind="K19",
    dimension=Dimension.RECOVERY,
    severity=Severity.HIGH,
    title="a takeover is not one step, or goes by a process number",
    interleaving=(
        "A and B both find that C's lock is stale",
        "A removes it and takes the lock",
        "B removes what is A's lock now, and takes it, too",
    ),
    fixes={
        "": "let the lease end it; or compare and swap on the very value that was judged: a "
        "script, UPDATE ... WHERE owner = :old AND expires_at = :seen"
    },
    check=_takeover,
)


def _flush(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("flush"):
        yield Hit(
            fact, f"{fact.get('what')} goes when this starts: locks that others hold go with it"
        )


FLUSH_AT_START = Rule(
    id="A-REC-2",
    kind="K19",
    dimension=Dimension.RECOVERY,
    severity=Severity.CRITICAL,
    title="locks are swept away at the start of a program",
    interleaving=(
        "A holds the lock and works",
        "B is started anew and clears what it takes for left over",
        "C takes the lock; A is still inside",
    ),
    fixes={"": "leave locks to their leases; remove by hand only what is known to be dead"},
    check=_flush,
)


def _stale(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("stale"):
        yield Hit(
            fact,
            f"{fact.get('key')} was read in line {fact.get('line')}, before the lock was taken, "
            "and is written here without another look",
        )


NOT_READ_AGAIN = Rule(
    id="A-REC-3",
    kind="K25",
    dimension=Dimension.RECOVERY,
    severity=Severity.MEDIUM,
    title="what was read before the grant is not read again",
    interleaving=(
        "A and B see that the work is to be done; A gets the lock",
        "A does it and gives the lock back",
        "B gets the lock and does it again",
    ),
    fixes={"": "look again as the first thing under the lock, and leave if it is done"},
    check=_stale,
)


def _dead(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("dead_branch"):
        yield Hit(
            fact,
            "this never runs: without a time limit the acquire above waits until it has the lock",
        )


DEAD_BRANCH = Rule(
    id="A-REC-4",
    kind="K18",
    dimension=Dimension.RECOVERY,
    severity=Severity.MEDIUM,
    title="what is to be done without the lock can never run",
    interleaving=(
        "A's holder is dead and the lock stays",
        "B waits in acquire, without a limit",
        "B's way out, an alarm or a takeover, is never reached",
    ),
    fixes={
        "": "give acquire a time limit",
        "redis-py": "lock.acquire(blocking_timeout=SECONDS)",
        "kazoo": "lock.acquire(timeout=SECONDS), and catch LockTimeout",
    },
    check=_dead,
)


def _signal(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("signal"):
        yield Hit(
            fact,
            f"{fact.get('word')} waits for the word that the lock is free, without a limit: nobody "
            "says it if the holder dies",
        )


UNTIMED_SIGNAL = Rule(
    id="A-REC-5",
    kind="K20",
    dimension=Dimension.RECOVERY,
    severity=Severity.MEDIUM,
    title="a waiter relies on a signal and never looks by itself",
    interleaving=(
        "A holds the lock; B waits for the word that A sends on release",
        "A dies, or its word is lost with a connection or a fail-over",
        "the lease ends, the lock is free, and B waits for ever",
    ),
    fixes={"": "give the wait a limit of at most the lease, and then look at the lock itself"},
    check=_signal,
)
