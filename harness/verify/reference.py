"""docs/reference/verify.md: situations, properties, and what is claimed of each kind of lock."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from harness.verify.model import NAMES, PROPERTIES, Situation
from harness.verify.servers import SITUATIONS
from harness.verify.traits import traits_of

KINDS = (
    ("lease, no token", "redis-py", "redis-single"),
    ("lease, token", "redis-py-fenced", "redis-single"),
    ("five servers", "pottery", "redlock5"),
    ("Sentinel", "redis-py-sentinel", "redis-sentinel"),
    ("etcd", "aetcd", "etcd3"),
    ("ZooKeeper", "kazoo", "zookeeper3"),
    ("PostgreSQL", "psycopg", "postgres1"),
)
"""Columns of the table of claims: a library of each kind stands for all of it."""

_SHORT = {"breaks": "{}", "open": "({})"}


def verification() -> Iterator[str]:
    """The parts of the page."""
    yield (
        "What `lockhavoc verify` asks, and what each kind of lock is held to. The claims follow "
        "from the library's row in [libraries](libraries.md): what ends its lock, whether it "
        "renews, whether it gives tokens.\n"
    )
    yield "## Properties\n"
    yield _table(
        ("property", "question", "dimension", "answered by"),
        [
            (one.name, one.says, one.dimension, ", ".join(f"`{c}`" for c in one.checkers))
            for one in PROPERTIES
        ],
    )
    yield "## Situations\n"
    yield _table(
        ("situation", "what happens", "workload", "kind", "dimension", "quick", "survey", "where"),
        [
            (
                f"`{one.name}`",
                one.says,
                _workload(one),
                one.kind,
                one.dimension,
                "yes" if one.quick else "",
                "yes" if one.key else "",
                " ".join((inspect.getdoc(one.build) or "").split()),
            )
            for one in SITUATIONS.values()
        ],
    )
    yield "## What is not promised\n"
    yield (
        "Everything else is. A property that is expected to break stands as it is, one that may "
        "break or hold in brackets; `-`: the situation does not apply.\n"
    )
    yield _table(("situation", *(words for words, _, _ in KINDS)), list(_claims()))


def _workload(situation: Situation) -> str:
    found = (situation.build(traits_of(lib, backend, "docker")) for _, lib, backend in KINDS)
    kinds = dict.fromkeys(s.workload.get("kind", "mutex") for s in found if s is not None)
    return ", ".join(f"`{kind}`" for kind in kinds)


def _claims() -> Iterator[tuple[str, ...]]:
    for situation in SITUATIONS.values():
        row = [f"`{situation.name}`"]
        for _, library, backend in KINDS:
            setup = situation.build(traits_of(library, backend, "docker"))
            if setup is None:
                row.append("-")
                continue
            stances = ((name, setup.claims[name]) for name in NAMES)
            row.append(", ".join(_SHORT[s].format(name) for name, s in stances if s in _SHORT))
        yield tuple(row)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"
