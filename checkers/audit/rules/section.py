"""Rules about the section itself: clocks, what blocks the renewal, what outlives the lock, order.

WORK_OUTLIVES.findings(facts)
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule


def _blocked(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("blocked_loop"):
        yield Hit(
            fact,
            f"{fact.get('what')} stops the event loop, and the task that renews the lease with it",
        )


BLOCKED_RENEWAL = Rule(
    id="A-LEASE-5",
    kind="K07",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="the renewal shares a loop or thread with the work",
    interleaving=(
        "A takes the lock; a task of the same loop is to renew it",
        "A's work blocks the loop for longer than the lease",
        "B takes the lock; A goes on",
    ),
    fixes={"": "await asyncio.to_thread(work), or renew from a thread of its own"},
    check=_blocked,
)


def _clock(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("clock"):
        what = fact.get("what")
        if what == "shared":
            says = f"{fact.get('word')} is this client's wall clock; others judge it by theirs"
        elif what == "sql":
            says = "the end of the lease is this client's wall clock; others judge it by theirs"
        else:
            says = f"{fact.get('word')} measures a lease by a clock that may be set"
        yield Hit(fact, says, severity=Severity.MEDIUM if what == "elapsed" else None)


WALL_CLOCK = Rule(
    id="A-LEASE-8",
    kind="K10",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="a lease is judged by the wall clock of a client",
    interleaving=(
        "A writes until when it holds, by its clock",
        "B's clock is ahead: to B the lease is over, and B takes the lock",
        "A is still inside",
    ),
    fixes={
        "": "let the server count: PX of Redis, now() of the database, a lease of etcd; and "
        "time.monotonic() for durations"
    },
    check=_clock,
)


def _validity(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("validity"):
        yield Hit(
            fact,
            f"{fact.get('word')} counts from after the answer; the lease runs since the request",
        )


VALIDITY = Rule(
    id="A-LEASE-9",
    kind="K09",
    dimension=Dimension.LEASE,
    severity=Severity.MEDIUM,
    title="the end of a lease is counted from after the grant",
    interleaving=(
        "A asks; the server grants and starts the lease",
        "the answer takes its time; A counts the whole lease from here",
        "the lease ends and B is granted the lock while A believes in the rest",
    ),
    fixes={
        "": "start = time.monotonic() before the request; until = start + lease - drift; "
        "leave if it is over"
    },
    check=_validity,
)


def _unordered(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("token_order"):
        yield Hit(
            fact,
            f"{fact.get('word')} is random: it names an owner and has no order, so that an old one "
            "may well be the greater",
        )
    off = _persistence(facts)
    for fact in facts.of("counter"):
        if off is not None:
            yield Hit(
                fact,
                f"the counter {fact.get('key')!r} begins again at 1 after a restart: {off}",
                severity=Severity.MEDIUM,
            )


def _persistence(facts: Facts) -> str | None:
    """Where a Redis is told to keep nothing, None if none is."""
    by_place: dict[tuple[str, str], dict[str, str]] = {}
    for fact in facts.of("setting"):
        if fact.get("format") == "redis":
            own = by_place.setdefault((fact.place.path, fact.scope), {})
            own[str(fact.get("name"))] = str(fact.get("value"))
            own["at"] = str(fact.place)
    for own in by_place.values():
        if own.get("appendonly", "no") == "no" and own.get("save") in ("", '""', "''"):
            return f'appendonly no and save "" ({own["at"]})'
    return None


TOKEN_ORDER = Rule(
    id="A-FENCE-2",
    kind="K11",
    dimension=Dimension.FENCING,
    severity=Severity.HIGH,
    title="the token has no order, or loses it",
    interleaving=(
        "A is granted the lock with token 9b...",
        "A's lease ends; B is granted it with token 17... and writes",
        "A's late write has the greater token and is accepted",
    ),
    fixes={
        "": "a number that grows with each grant and survives a restart: a sequence of the "
        "database, etcd's revision, ZooKeeper's czxid"
    },
    check=_unordered,
)


def _loss(facts: Facts) -> Iterator[Hit]:
    if not list(facts.of("listener")):
        for fact in facts.of("unwatched"):
            yield Hit(
                fact, "goes on for as long as it likes; nobody listens whether the session is lost"
            )
    for fact in facts.of("deaf"):
        yield Hit(fact, f"{fact.get('what')} notes the loss of the session and stops nothing")


LOSS_UNHEARD = Rule(
    id="A-FENCE-3",
    kind="K08",
    dimension=Dimension.FENCING,
    severity=Severity.HIGH,
    title="nobody listens to the loss of the lock, or does nothing about it",
    interleaving=(
        "A leads; its session expires while it is cut off",
        "the server gives the lock to B",
        "A goes on leading, as nothing tells it",
    ),
    fixes={
        "": "derive 'I hold it' from the server, and stop the work when it cannot be confirmed",
        "kazoo": "client.add_listener: on SUSPENDED and LOST set an event that the loop looks at",
    },
    check=_loss,
)


def _outlives(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("outlives"):
        yield Hit(
            fact,
            f"what {fact.get('what')} starts here is not waited for: it goes on after the lock of "
            f"line {fact.get('line')} is given back",
        )


WORK_OUTLIVES = Rule(
    id="A-FENCE-4",
    kind="K11",
    dimension=Dimension.FENCING,
    severity=Severity.HIGH,
    title="the lock is given back before the work has stopped",
    interleaving=(
        "A takes the lock, starts a thread and gives the lock back",
        "B takes the lock and writes",
        "A's thread writes",
    ),
    fixes={"": "wait for it (join, result, await) before the release, or take the lock inside it"},
    check=_outlives,
)


def _cleared(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("cleared"):
        yield Hit(
            fact,
            f"{fact.get('word')} is forgotten before the release of line {fact.get('line')}: if "
            "that fails, nobody can give the lock back",
        )


FORGOTTEN_FIRST = Rule(
    id="A-REL-3",
    kind="K16",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="the client forgets the lock before the server has released it",
    interleaving=(
        "A forgets that it holds the lock",
        "its release meets a broken connection",
        "A cannot try again: it does not know its token any more",
    ),
    fixes={"": "forget it after the server has confirmed, and keep it where the release raised"},
    check=_cleared,
)


def _transaction(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("outer"):
        if fact.get("what") == "transaction":
            yield Hit(
                fact,
                f"the lock is given back before the transaction of line {fact.get('line')} "
                "commits: the next holder reads the old state",
            )
    for fact in facts.of("commit_after"):
        yield Hit(
            fact,
            f"the write of line {fact.get('write_line')} is committed here, after the lock was "
            "given back",
        )


TRANSACTION_ORDER = Rule(
    id="A-REL-6",
    kind="K15",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.HIGH,
    title="the lock ends before the transaction it protects",
    interleaving=(
        "A reads and writes under the lock, and gives it back",
        "B takes the lock and reads the state before A's write",
        "A commits; B writes over it",
    ),
    fixes={
        "": "with lock: with transaction: ...; or pg_advisory_xact_lock, which ends with the commit"
    },
    check=_transaction,
    also=(Dimension.FENCING,),
)


def _left(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("cancelled"):
        yield Hit(
            fact,
            "a time limit that cancels the acquire may cancel it after the server granted: the "
            "lock is taken and nobody knows",
        )
    for fact in facts.of("quorum_left"):
        yield Hit(
            fact,
            "where too few servers agree, those that did keep the entry for the whole lease",
        )


ENTRY_LEFT = Rule(
    id="A-REL-8",
    kind="K17",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="an acquire that fails leaves its entry",
    interleaving=(
        "A asks; the server grants",
        "A's time limit is over just before the answer: A gives up",
        "the entry stays; B waits for somebody who is not there",
    ),
    fixes={
        "": "after every way out but success, release by the token of this attempt on all servers",
        "redis-py": "lock.acquire(blocking_timeout=SECONDS), which ends by itself",
    },
    check=_left,
)
