"""Rules about asking again: pauses, deadlines, budgets, outcomes, order, and what a waiter holds.

    STEADY_RETRY.findings(facts)

Traps: one try and no more is no retry, and a loop that works between two tries is a service.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule, seconds

_LOOP = (
    "lockhavoc retry shows policies side by side; a wait grows, is random and has a cap: "
    "delay = min(cap, base * 2 ** attempt) * random.uniform(0.5, 1)"
)


def _steady(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("retry"):
        pause = fact.get("pause")
        if pause == "constant":
            step = fact.get("step_ns")
            every = f" every {seconds(step)}" if step else " at one step"
            yield Hit(fact, f"asks again{every}: all waiters stay in step and meet at each turn")
        elif pause == "grows":
            yield Hit(fact, "the pause grows, the same for all: waiters that began together meet")
        elif pause == "none":
            yield Hit(fact, "asks again without a pause, as fast as the server answers")


STEADY_RETRY = Rule(
    id="A-RETRY-1",
    kind="K22",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="the pause between tries is constant, has no chance in it, or is none",
    interleaving=(
        "the server is back after an outage; a hundred clients begin to ask",
        "all wait the same time and ask at the same moment, again and again",
        "the server is kept busy by refusals; renewals come late",
    ),
    fixes={"": _LOOP},
    check=_steady,
)


def _endless(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("retry"):
        if not fact.get("bounded"):
            yield Hit(fact, "asks until it gets the lock, with no deadline and no last attempt")


ENDLESS_RETRY = Rule(
    id="A-RETRY-2",
    kind="K23",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="waiting for the lock has no end",
    interleaving=(
        "A holds the lock and does not give it back",
        "B asks for ever; its caller waits, and so does all behind it",
        "nobody is told",
    ),
    fixes={
        "": "a deadline by a monotonic clock, and an error that says how long was waited",
        "redis-py": "lock.acquire(blocking_timeout=SECONDS)",
        "kazoo": "lock.acquire(timeout=SECONDS)",
    },
    check=_endless,
)


def _short(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("retry"):
        attempts, step, lease = fact.get("attempts"), fact.get("step_ns"), fact.get("lease_ns")
        if fact.get("gives_up") and attempts and step and lease and attempts * step < lease:
            yield Hit(
                fact,
                f"gives up with an error after {seconds(attempts * step)}, while a holder may keep "
                f"the lock for {seconds(lease)}: being busy counts as a failure",
            )
    for fact in facts.of("limit"):
        if fact.get("wait_ns") < fact.get("work_ns"):
            yield Hit(
                fact,
                f"waits {seconds(fact.get('wait_ns'))} for a lock under which others work for "
                f"{seconds(fact.get('work_ns'))}",
            )


SHORT_BUDGET = Rule(
    id="A-RETRY-3",
    kind="K23",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="the budget for waiting is shorter than the longest legal hold",
    interleaving=(
        "A holds the lock, rightly, for most of its lease",
        "B uses up its tries and fails",
        "B's work is lost, or goes to the dead letters",
    ),
    fixes={"": "wait at least as long as a hold may last, or do not count contention as failure"},
    check=_short,
)


def _merged(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("merged"):
        yield Hit(
            fact,
            f"{fact.get('error')} is answered like a lock that is taken: an outage looks like "
            "contention",
        )


MERGED_OUTCOMES = Rule(
    id="A-RETRY-4",
    kind="K23",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="busy and unreachable are one answer",
    interleaving=(
        "the store is down",
        "each acquire answers no, as if somebody had the lock",
        "work is skipped for hours; no alarm is raised",
    ),
    fixes={"": "return no only where the server said no; let errors of the way there be errors"},
    check=_merged,
)


def _order(facts: Facts) -> Iterator[Hit]:
    seen = {(f.get("outer"), f.get("inner")): f for f in facts.of("nested")}
    for fact in facts.of("nested"):
        other = seen.get((fact.get("inner"), fact.get("outer")))
        if other is not None:
            yield Hit(
                fact,
                f"takes {fact.get('inner')!r} under {fact.get('outer')!r}; {other.place} does it "
                "the other way round",
            )
    for fact in facts.of("unsorted"):
        word = fact.get("word")
        yield Hit(
            fact, f"takes several locks in the order of {word}, which another caller may turn round"
        )


LOCK_ORDER = Rule(
    id="A-RETRY-5",
    kind="K24",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.HIGH,
    title="several locks are taken in no common order",
    interleaving=(
        "A takes lock 1, B takes lock 2",
        "A waits for lock 2, B waits for lock 1",
        "both wait until a lease ends, and work under a lock that is over",
    ),
    fixes={"": "for name in sorted(set(names)): acquire; give all back if one is not to be had"},
    check=_order,
)


def _hidden(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("outer"):
        if fact.get("what") == "connection":
            yield Hit(
                fact,
                f"waits for the lock with a connection of {fact.get('outer')} in hand (line "
                f"{fact.get('line')}): enough waiters take all that the holder needs",
            )
    for fact in facts.of("index_build"):
        yield Hit(
            fact,
            "an index is built concurrently under a lock: it waits for the snapshots of all "
            "transactions, those that wait for this lock among them",
        )


HIDDEN_HOLD = Rule(
    id="A-RETRY-6",
    kind="K24",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.HIGH,
    title="a waiter holds what the holder needs",
    interleaving=(
        "A holds the lock and needs a connection (or that old snapshots end)",
        "all connections (or snapshots) are held by those that wait for A",
        "nobody goes on",
    ),
    fixes={"": "take the lock first, and the connection or transaction under it"},
    check=_hidden,
)
