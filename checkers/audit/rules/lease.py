"""Rules about the lease: is there one, is it set at once, in which unit, and does renewal count.

    TIMING.findings(facts)

Traps: a lease that could not be followed to a number is not a lease of none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from checkers.audit.model import Dimension, Fact, Place, Severity
from checkers.audit.rule import Facts, Hit, Rule, seconds

MS, S = 1_000_000, 1_000_000_000
_SAYS_MS = re.compile(r"(_ms|_millis|_msec|milliseconds|MS|Millis)$", re.I)
_SAYS_S = re.compile(r"(_s|_sec|_secs|_seconds|seconds)$", re.I)


def _no_lease(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("lock"):
        if fact.get("lease") == "ttl" and fact.get("lease_ns", 0) is None:
            if fact.get("renewing"):
                continue
            yield Hit(fact, "this lock never expires: if its holder dies, nobody gets it again")


NO_LEASE = Rule(
    id="A-LEASE-1",
    kind="K05",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="the lock has no lease",
    interleaving=(
        "A takes the lock",
        "A is killed, or its machine dies",
        "the key stays for ever; B waits without end",
    ),
    fixes={
        "": "give the lock a lease in the step that takes it",
        "redis-py": "client.lock(name, timeout=SECONDS), longer than the longest work, or renew",
        "python-redis-lock": "redis_lock.Lock(client, name, expire=SECONDS, auto_renewal=True)",
        "redis commands": "SET key token NX PX milliseconds, one command",
        "lock table": "give the table a column for the expiry, set it by the server's clock in the "
        "statement that takes the row, and let others take a row that has expired",
    },
    check=_no_lease,
    also=(Dimension.RECOVERY,),
)


def _second_command(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("lock"):
        if fact.get("expire_line"):
            here = fact.place
            last = max(here.end_line, int(fact.get("expire_end") or here.line))
            where = Place(here.path, here.line, last, here.column)
            yield Hit(
                fact,
                f"the lease is set by a second command (line {fact.get('expire_line')}): a client "
                "that dies between the two leaves a lock without a lease",
                place=where,
            )


SECOND_COMMAND = Rule(
    id="A-LEASE-2",
    kind="K05",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="the lease is set in a second command",
    interleaving=(
        "A creates the key",
        "A dies before the command that sets the lease",
        "the key stays for ever; B waits without end",
    ),
    fixes={
        "": "client.set(key, token, nx=True, px=MILLISECONDS), one command",
        "javascript": "client.set(key, token, 'PX', milliseconds, 'NX'), or {NX: true, PX: "
        "milliseconds} in node-redis, one command",
        "go": "SetNX(ctx, key, token, 30*time.Second), one command",
        "java": "SET with NX and PX in one command: SetParams().nx().px(ms), or "
        "setIfAbsent(key, token, Duration)",
        "ruby": "redis.set(key, token, nx: true, px: milliseconds), one command",
    },
    check=_second_command,
    also=(Dimension.RECOVERY,),
)


def _unit(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("lock"):
        word, unit = fact.get("lease_word"), fact.get("lease_unit_ns")
        if not word or not unit:
            continue
        name = re.sub(r"\(.*|\W+$", "", str(word).rpartition(".")[2])
        lease_ns = fact.get("lease_ns")
        number = None if lease_ns is None else lease_ns / unit
        if unit == S and _SAYS_MS.search(name):
            says = f"{word} is milliseconds by its name, and this takes seconds"
        elif unit == MS and _SAYS_S.search(name):
            says = f"{word} is seconds by its name, and this takes milliseconds"
        elif unit == S and number and number >= 5000 and number % 1000 == 0 and number % 3600:
            says = f"the lease is {number:g} seconds ({number / 3600:.1f} hours): milliseconds?"
        elif unit == 1 and lease_ns and 0 < lease_ns < MS:
            says = f"the lease is {lease_ns} nanoseconds: a duration without its unit"
        elif unit == MS and number and 0 < number < 100:
            says = f"the lease is {number:g} milliseconds, over before the work begins: seconds?"
        else:
            continue
        yield Hit(fact, says)


UNIT = Rule(
    id="A-LEASE-3",
    kind="K06",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="the lease is given in another unit than the function takes",
    interleaving=(
        "A means a lease of seconds and gets one of milliseconds (or the other way round)",
        "the lease is over while A works (or a dead holder blocks for hours)",
        "B takes the lock while A is inside (or waits for hours)",
    ),
    fixes={
        "": "convert at the call, and put the unit last in the name (lease_s, lease_ms)",
        "go": "write the unit: 30*time.Second",
        "ShedLock": 'write the unit: lockAtMostFor = "10m"; a bare number is milliseconds',
    },
    check=_unit,
)


def _timing(facts: Facts) -> Iterator[Hit]:
    renewed = {(f.place.path, f.get("library")) for f in facts.of("renew")}
    for fact in facts.of("wait"):
        lease_ns, pause_ns = fact.get("lease_ns"), fact.get("pause_ns")
        if not lease_ns or not pause_ns or fact.get("renewing") or not fact.get("freed"):
            continue
        if (fact.place.path, fact.get("library")) in renewed:
            continue
        if pause_ns >= lease_ns:
            yield Hit(
                fact,
                f"the work waits {seconds(pause_ns)} inside a lease of {seconds(lease_ns)} that "
                "nobody renews",
            )
    leases: dict[tuple[str, str], set[int]] = {}
    for lock in facts.of("lock"):
        if lock.get("lease_ns"):
            whose = (lock.place.path, str(lock.get("library")))
            leases.setdefault(whose, set()).add(lock.get("lease_ns"))
    for renew in facts.of("renew"):
        every_ns = renew.get("every_ns")
        known = leases.get((renew.place.path, str(renew.get("library"))), set())
        lease_ns = renew.get("lease_ns") or (min(known) if len(known) == 1 else None)
        if every_ns and lease_ns and every_ns * 2 > lease_ns:
            yield Hit(renew, _too_slow(every_ns, lease_ns))
    yield from _settings(facts)


def _too_slow(every_ns: int, lease_ns: int) -> str:
    return (
        f"renewed every {seconds(every_ns)} with a lease of {seconds(lease_ns)}: one late or lost "
        "renewal ends it (renew at most every half, better every third)"
    )


_LEASE_NAME = re.compile(
    r"(?:^|[_.\-])(ttl|lease|expire|expiry|expiration|lease_?duration|lease_?ttl|lock_?timeout)"
    r"(?:_?duration|_?time)?(?:[_\-](?:ms|s|sec|secs|seconds|millis|milliseconds))?$",
    re.I,
)
_RENEW_NAME = re.compile(r"renew|refresh|heartbeat|keep_?alive|extend", re.I)
_ABOUT = re.compile(r"(?<![a-z])(lock|lease|leader|mutex)", re.I)
_PERIOD = re.compile(r"interval|period|every|frequency|seconds$|_s$|_ms$|renew$", re.I)


def _settings(facts: Facts) -> Iterator[Hit]:
    """A lease and its renewal as settings, wherever they are written down."""
    leases: list[Fact] = []
    renewals: list[Fact] = []
    for fact in facts.of("setting"):
        name = str(fact.get("name"))
        if fact.get("duration_ns") is None or not _ABOUT.search(name):
            continue
        if _RENEW_NAME.search(name):
            if _PERIOD.search(name) and not re.search("deadline", name, re.I):
                renewals.append(fact)
        elif _LEASE_NAME.search(name):
            leases.append(fact)
    for renewal in renewals:
        # More than one lease: which of them is meant is not known, so nothing is claimed.
        own = [x for x in leases if x.place.path == renewal.place.path] or leases
        if len(own) == 1 and renewal.get("duration_ns") * 2 > own[0].get("duration_ns"):
            lease = own[0]
            says = _too_slow(renewal.get("duration_ns"), lease.get("duration_ns"))
            yield Hit(renewal, f"{says}; the lease is {lease.get('name')} at {lease.place}")


TIMING = Rule(
    id="A-LEASE-4",
    kind="K06",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="the times of one lock do not fit each other",
    interleaving=(
        "A takes the lock and works",
        "the lease ends before the work does, or before the next renewal",
        "B takes the lock; A is still inside",
    ),
    fixes={"": "make the lease longer than the work, or renew at most every third of the lease"},
    check=_timing,
)


def _creating(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("renew"):
        if fact.get("creates"):
            what = "a plain SET takes the lock"
            if fact.get("library") == "lock table":
                what = "this UPDATE gives the row to a new owner"
            yield Hit(fact, f"{what}, whoever holds it: a late renewal steals it")


CREATING_RENEWAL = Rule(
    id="A-LEASE-7",
    kind="K09",
    dimension=Dimension.LEASE,
    severity=Severity.CRITICAL,
    title="a renewal can create or steal ownership",
    interleaving=(
        "A is held up; its lease ends; B takes the lock",
        "A's renewal sets the key again, with A as owner",
        "A and B are inside, and B's release does not fit any more",
    ),
    fixes={
        "": "renew by a script: if redis.call('get', KEYS[1]) == ARGV[1] then return "
        "redis.call('pexpire', KEYS[1], ARGV[2]) end; and stop the work if it answers nil or 0",
        "lock table": "renew with AND owner = :token, take over with AND expires_at < now(), and "
        "check that one row was changed",
    },
    check=_creating,
    also=(Dimension.IDENTITY,),
)


def _unused_renewal(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("renew"):
        if fact.get("creates"):
            continue  # its answer is always yes
        if fact.get("fails_by") == "false" and fact.get("use") == "dropped":
            yield Hit(fact, "the answer says whether the lock is still ours, and nobody looks")
        elif fact.get("fails_by") == "raise" and fact.get("swallowed"):
            yield Hit(fact, "the error that says that the lock is lost is only noted; work goes on")


UNUSED_RENEWAL = Rule(
    id="A-LEASE-6",
    kind="K08",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="the answer of a renewal is not used",
    interleaving=(
        "A's lease ends while A is cut off or paused; B takes the lock",
        "A renews and is told that the lock is not its own",
        "A works on, beside B",
    ),
    fixes={"": "stop the work when a renewal fails or gets no answer until the lease can be over"},
    check=_unused_renewal,
    also=(Dimension.FENCING,),
)
