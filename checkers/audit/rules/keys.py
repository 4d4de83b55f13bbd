"""Rules about keys: are they the same everywhere, are they only locks', and who compares what.

UNSTABLE_KEY.findings(facts)
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule


def _unstable(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("key"):
        if fact.get("made") == "hash":
            says = (
                f"{fact.get('word')} is another number in each process (PYTHONHASHSEED): two that "
                "mean the same thing take different locks"
            )
            yield Hit(fact, says, severity=Severity.CRITICAL)
        else:
            says = f"{fact.get('word')} is narrow: things that have nothing in common share a lock"
            yield Hit(fact, says, severity=Severity.MEDIUM)


UNSTABLE_KEY = Rule(
    id="A-ID-4",
    kind="K03",
    dimension=Dimension.IDENTITY,
    severity=Severity.CRITICAL,
    title="the key comes from an unstable or a narrow hash",
    interleaving=(
        "process A derives the key of a thing and takes its lock",
        "process B derives another key of the same thing, and takes that",
        "both are inside",
    ),
    fixes={
        "": "derive keys from a digest that is the same everywhere: "
        "int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), 'big', signed=True)"
    },
    check=_unstable,
)


def _data_key(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("data_key"):
        yield Hit(
            fact,
            f"{fact.get('command')} writes data under {fact.get('key')!r}, which is the key of the "
            f"lock of line {fact.get('line')}: writing it takes or breaks the lock",
        )


DATA_KEY = Rule(
    id="A-ID-5",
    kind="K03",
    dimension=Dimension.IDENTITY,
    severity=Severity.HIGH,
    title="the key of a lock is also a key of data",
    interleaving=(
        "A takes the lock: its token stands under the key",
        "somebody writes data under that key; the token is gone",
        "A's release does not fit; B takes the lock while A is inside",
    ),
    fixes={"": "give locks a prefix of their own, such as lock:, that nothing else writes"},
    check=_data_key,
)


def _open(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("open"):
        if fact.get("how") == "null":
            says = f"{fact.get('error')} stands in for the lock: the section runs without any"
        else:
            says = f"after {fact.get('error')} the work goes on as if the lock had been taken"
        yield Hit(fact, says)


FAIL_OPEN = Rule(
    id="A-ID-7",
    kind="K04",
    dimension=Dimension.IDENTITY,
    severity=Severity.CRITICAL,
    title="when the lock cannot be asked for, the work is done without it",
    interleaving=(
        "the store is down for a moment",
        "A's acquire raises, and A goes on; so does B",
        "both are inside",
    ),
    fixes={
        "": "let the error end the work, or retry until a deadline; a lock that fails is closed"
    },
    check=_open,
)


def _local(facts: Facts) -> Iterator[Hit]:
    several = [
        f
        for f in facts.of("setting")
        if f.get("format") in ("deployment", "python")
        and str(f.get("name")) in ("replicas", "workers", "WEB_CONCURRENCY", "processes")
        and str(f.get("value")).isdigit()
        and int(str(f.get("value"))) > 1
    ]
    if not several:
        return
    where = several[0]
    for fact in facts.of("local_lock"):
        yield Hit(
            fact,
            f"{fact.get('what')} keeps out threads of this process only, and there are "
            f"{where.get('value')} of them ({where.get('name')} at {where.place}); the write of "
            f"line {fact.get('write_line')} is done by all",
        )


LOCAL_LOCK = Rule(
    id="A-ID-8",
    kind="K04",
    dimension=Dimension.IDENTITY,
    severity=Severity.HIGH,
    title="a lock of one process where several processes run",
    interleaving=(
        "process A enters under its own lock",
        "process B enters under its own lock",
        "both write",
    ),
    fixes={"": "a lock on a server that all processes use, or a constraint in the database"},
    check=_local,
)


def _compared(facts: Facts) -> Iterator[Hit]:
    for fact in facts.of("compare"):
        yield Hit(
            fact,
            f"{fact.get('word')} compares bytes with text, which never are equal: this client does "
            "not decode answers",
        )


BYTES_COMPARED = Rule(
    id="A-ID-9",
    kind="K16",
    dimension=Dimension.IDENTITY,
    severity=Severity.HIGH,
    title="the owner is compared with an answer that was not decoded",
    interleaving=(
        "A takes the lock and is done",
        "A asks who owns it and is told b'token', which is not 'token'",
        "A leaves the lock as it is; B waits for the whole lease",
    ),
    fixes={"": "compare in a script on the server; or decode_responses=True, and test the release"},
    check=_compared,
)
