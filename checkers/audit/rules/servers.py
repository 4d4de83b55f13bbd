"""Rules about servers and hosts: what survives a restart, who is asked, the trio, the clock.

DURABILITY.findings(facts)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from checkers.audit.model import Dimension, Fact, Severity
from checkers.audit.rule import Facts, Hit, Rule, seconds

_OFF = {"no", "off", "false", "0"}


def _last(facts: Facts, form: str) -> dict[tuple[str, str], dict[str, Fact]]:
    """Settings of a format by file and service; the last of a name counts."""
    found: dict[tuple[str, str], dict[str, Fact]] = {}
    for fact in facts.of("setting"):
        if fact.get("format") == form:
            own = found.setdefault((fact.place.path, fact.scope), {})
            own[str(fact.get("name"))] = fact
    return found


def _durability(facts: Facts) -> Iterator[Hit]:
    yield from _redis(facts)
    yield from _members(facts)
    for form, name, bad, says in (
        (
            "etcd",
            "unsafe-no-fsync",
            {"true", "", "1"},
            "a restart may forget grants that were told",
        ),
        ("zoo", "forceSync", _OFF, "a restart may forget locks that were told"),
        ("postgresql", "fsync", _OFF, "a crash may forget what was committed"),
        ("postgresql", "synchronous_commit", _OFF, "a crash may forget what was committed"),
    ):
        for own in _last(facts, form).values():
            fact = own.get(name)
            if fact is not None and str(fact.get("value")).lower() in bad:
                yield Hit(fact, f"{name} {fact.get('value')}: {says}")


def _redis(facts: Facts) -> Iterator[Hit]:
    locks = any(f.get("family") == "redis" for f in facts.of("lock"))
    judged = locks or not facts.code_files
    for own in _last(facts, "redis").values():
        aof, save = own.get("appendonly"), own.get("save")
        kept = aof is not None and str(aof.get("value")).lower() == "yes"
        nothing = save is not None and str(save.get("value")).strip("'\"") == ""
        if judged and nothing and not kept:
            assert save is not None
            yield Hit(
                save,
                "nothing is kept on disk: after a restart all locks are free while their holders "
                "work on",
            )
    for fact in facts.of("setting"):
        if fact.get("format") == "redis" and fact.get("name") == "sentinel":
            words = str(fact.get("value")).split()
            if len(words) == 5 and words[0] == "monitor" and words[4] == "1":
                yield Hit(
                    fact,
                    "one sentinel alone may promote a replica: on the wrong side of a cut it "
                    "makes a second primary",
                    severity=Severity.HIGH,
                )


def _members(facts: Facts) -> Iterator[Hit]:
    for own in _last(facts, "etcd").values():
        fact = own.get("initial-cluster")
        if fact is not None:
            count = len([m for m in str(fact.get("value")).split(",") if "=" in m])
            yield from _even(fact, count)
    for own in _last(facts, "zoo").values():
        servers = [fact for name, fact in own.items() if re.fullmatch(r"server\.\d+", name)]
        if servers:
            yield from _even(servers[-1], len(servers))


def _even(fact: Fact, count: int) -> Iterator[Hit]:
    if count and count % 2 == 0:
        yield Hit(
            fact,
            f"{count} members: the loss of {count // 2} stops all, as it would with {count - 1}"
            + ("; of 2 none may fail" if count == 2 else ""),
        )


DURABILITY = Rule(
    id="A-CFG-2",
    kind="K12",
    dimension=Dimension.RECOVERY,
    severity=Severity.MEDIUM,
    title="the server may forget grants, or one voice decides",
    interleaving=(
        "A is granted the lock",
        "the server restarts (or another is promoted) without it",
        "B is granted the lock; A is still inside",
    ),
    fixes={
        "": "keep locks on disk (appendonly yes, appendfsync always), wait longer than a lease "
        "before a server that forgot grants again, and an odd number of at least three voices"
    },
    check=_durability,
)


def _replicas(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("replica_read"):
        yield Hit(fact, f"{fact.get('word')}: a replica may not have heard of the grant yet")
    about = re.compile(r"read[_\-]?(?:from|mode|preference)$", re.I)
    for fact in facts.of("setting"):
        name = str(fact.get("name")).rpartition(".")[2]
        value = str(fact.get("value"))
        if about.search(name) and re.search(r"replica|slave|secondary|any", value, re.I):
            yield Hit(fact, f"{name} {value}: a replica may not have heard of the grant yet")


REPLICA_READS = Rule(
    id="A-CFG-4",
    kind="K12",
    dimension=Dimension.RECOVERY,
    severity=Severity.HIGH,
    title="the state of a lock is read from replicas",
    interleaving=(
        "A takes the lock on the primary",
        "B looks on a replica that is behind: nobody has it",
        "B goes on as if it were free",
    ),
    fixes={"": "read what decides about ownership from the primary, or linearizably"},
    check=_replicas,
)

_TRIO = (
    ("lease", re.compile(r"lease[_\-]?duration(?:[_\-]?seconds)?$", re.I)),
    ("renew", re.compile(r"renew[_\-]?deadline(?:[_\-]?seconds)?$", re.I)),
    ("retry", re.compile(r"retry[_\-]?period(?:[_\-]?seconds)?$", re.I)),
)
JITTER = 1.2  # client-go multiplies the retry period by up to this


def _trio(facts: Facts) -> Iterator[Hit]:
    groups: dict[tuple[str, str, str], dict[str, Fact]] = {}
    for fact in facts.of("setting"):
        if fact.get("duration_ns") is None:
            continue
        name = str(fact.get("name"))
        for part, known in _TRIO:
            if known.search(name):
                stem = name.rpartition(".")[0]
                own = groups.setdefault((fact.place.path, fact.scope, stem), {})
                own[part] = fact
    leases: dict[str, Fact] = {}
    for (_, scope, _), own in groups.items():
        ns = {part: int(fact.get("duration_ns")) for part, fact in own.items()}
        if "lease" in ns and "renew" in ns and ns["renew"] >= ns["lease"]:
            yield Hit(
                own["renew"],
                f"the leader tries to renew for {seconds(ns['renew'])}, its lease ends after "
                f"{seconds(ns['lease'])}: two lead",
            )
        if "renew" in ns and "retry" in ns and ns["retry"] * JITTER >= ns["renew"]:
            yield Hit(
                own["retry"],
                f"one try each {seconds(ns['retry'])} and {seconds(ns['renew'])} to renew: the "
                "first try that fails ends the lease",
            )
        if "lease" in own and scope:
            other = leases.setdefault(scope, own["lease"])
            if other.get("duration_ns") != ns["lease"]:
                yield Hit(
                    own["lease"],
                    f"candidates of {scope} have leases of {seconds(ns['lease'])} and "
                    f"{seconds(other.get('duration_ns'))} ({other.place}): each judges by its own",
                )


ELECTION_TIMES = Rule(
    id="A-CFG-5",
    kind="K06",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="the three times of a leader election do not fit",
    interleaving=(
        "the leader cannot renew and goes on trying",
        "its lease ends; another candidate takes over",
        "the first still acts as leader until its deadline",
    ),
    fixes={"": "lease duration > renew deadline > 1.2 x retry period, such as 15 s, 10 s, 2 s"},
    check=_trio,
)


def _clock(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("setting"):
        if fact.get("format") != "clock":
            continue
        name, words = str(fact.get("name")), str(fact.get("value")).split()
        if name == "makestep" and len(words) == 2 and words[1].startswith("-"):
            yield Hit(fact, "the clock may be set at any time, also while locks are held")
        elif (
            name == "tinker" and "panic" in words and words[words.index("panic") + 1 :][:1] == ["0"]
        ):
            yield Hit(fact, "the clock may jump by any amount while locks are held")


CLOCK_STEPS = Rule(
    id="A-CFG-6",
    kind="K10",
    dimension=Dimension.LEASE,
    severity=Severity.MEDIUM,
    title="the clock of the host may be set while locks are held",
    interleaving=(
        "A takes the lock for 30 s",
        "the clock of the server is set forward by a minute",
        "the server ends A's lease at once; B takes the lock",
    ),
    fixes={"": "makestep 1 3: step at the start only, slew afterwards"},
    check=_clock,
)
