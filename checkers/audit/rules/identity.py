"""Rules about who the owner is: guard of release and renewal, tokens, entering without the lock.

    UNGUARDED.findings(facts)

Traps: a client that reads, compares and then deletes does it in two steps; that is no guard.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule

_SCRIPT = (
    "send one script: if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', "
    "KEYS[1]) end, with a token that is new for each acquisition; or use the library's own lock"
)


def _unguarded(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("release", "renew"):
        if fact.get("guard") or fact.get("creates"):
            continue  # what creates is worse, and A-LEASE-7 says so
        frees = fact.kind == "release"
        what = "deletes the lock" if frees else "lengthens the lease"
        how = (
            "compares the token in one command and acts in another, so the lock can change hands "
            "in between"
            if fact.get("compared")
            else "does not look at who owns it"
        )
        side = Dimension.RELEASE_RETRY if frees else Dimension.LEASE
        yield Hit(fact, f"{what}, but {how}", dimension=side)


UNGUARDED = Rule(
    id="A-ID-1",
    kind="K01",
    dimension=Dimension.IDENTITY,
    severity=Severity.CRITICAL,
    title="release or renewal is not one atomic step guarded by the owner's token",
    interleaving=(
        "A takes the lock and is held up for longer than its lease",
        "the lease ends; B takes the lock",
        "A goes on and deletes (or lengthens) what is B's lock now",
        "C takes the lock while B is still at work",
    ),
    fixes={
        "": _SCRIPT,
        "lua": "if redis.call('get', KEYS[1]) == ARGV[1] then (del or pexpire) else return 0 end",
        "Redisson": "unlock(), which compares the owner; forceUnlock() is for people, not code",
        "lock table": "add AND owner = :token to the condition, and check that one row was changed",
    },
    check=_unguarded,
    also=(Dimension.IDENTITY,),
)


def _guessable(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("grant"):
        word = fact.get("token_word")
        if fact.get("token") == "constant":
            yield Hit(fact, f"the owner's token is the constant {word}: all owners look the same")
        elif fact.get("token") == "reusable":
            yield Hit(
                fact,
                f"the owner's token is {word}: another process, thread or container, or the same "
                "one later, can have the same",
            )


_FRESH = "make the token anew for each acquisition: token = uuid.uuid4().hex, and keep it with it"
_FRESH_FIXES = {
    "": _FRESH,
    "javascript": "make the token anew for each acquisition: crypto.randomUUID(), and keep it",
    "go": "make the token anew for each acquisition: uuid.NewString(), and keep it",
    "java": "make the token anew for each acquisition: UUID.randomUUID().toString(), and keep it",
    "ruby": "make the token anew for each acquisition: SecureRandom.uuid, and keep it",
    "lua": "take the token as ARGV[1], made anew by the client for each acquisition",
}
GUESSABLE_TOKEN = Rule(
    id="A-ID-2",
    kind="K01",
    dimension=Dimension.IDENTITY,
    severity=Severity.HIGH,
    title="the token is constant, guessable or used again",
    interleaving=(
        "A takes the lock with a value that B would write, too",
        "A's lease ends; B takes the lock with the same value",
        "A releases: the value fits, so B's lock is deleted",
    ),
    fixes=_FRESH_FIXES,
    check=_guessable,
)


def _shared(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("grant"):
        if fact.get("token") == "shared":
            word = fact.get("token_word")
            yield Hit(
                fact,
                f"the token {word} is made once, when the module is loaded: all threads, tasks and "
                "forked processes of this program are the same owner",
            )


SHARED_TOKEN = Rule(
    id="A-ID-3",
    kind="K02",
    dimension=Dimension.IDENTITY,
    severity=Severity.HIGH,
    title="the token lives longer or wider than one acquisition",
    interleaving=(
        "thread 1 takes the lock and is held up; its lease ends",
        "thread 2 of the same process takes it with the same token",
        "thread 1 releases: the token fits, so thread 2 has lost the lock",
    ),
    fixes=_FRESH_FIXES,
    check=_shared,
)


def _unused(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("grant"):
        if fact.get("how") == "with":
            looks = fact.get("use") in ("checked", "used")
            if not fact.get("with_raises") and fact.get("may_fail") and not looks:
                word = "block" if fact.get("language") else "with-block"
                yield Hit(
                    fact,
                    f"the {word} of {fact.get('library')} runs even if the lock was not taken",
                )
        elif fact.get("may_fail") and fact.get("use") in ("dropped", "unchecked"):
            yield Hit(
                fact,
                "this can come back without the lock, and nobody looks at the answer: the work "
                "goes on without it",
            )


UNUSED_ACQUIRE = Rule(
    id="A-ID-6",
    kind="K04",
    dimension=Dimension.IDENTITY,
    severity=Severity.CRITICAL,
    title="the critical section is entered without looking whether the lock was taken",
    interleaving=(
        "A holds the lock and works",
        "B asks for it and is told no",
        "B goes on into the same section",
    ),
    fixes={
        "": "if not acquired: leave (return, raise or retry) before the first protected step",
        "etcd3": "call acquire() yourself and leave if it returns False; its with-block does not "
        "look",
        "redlock-rb": "look at what the block is given (return unless locked), or call lock!",
        "go": "if err != nil, or if the answer is false: return before the first protected step",
        "django-pglock": "pass side_effect=pglock.Raise, or test the value that the block is given",
    },
    check=_unused,
)
