"""The page of the audit in docs/reference: rules, kinds of failure, what is known of libraries.

tables()    # (title, head, rows) in the order of the page
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.audit.kinds import KINDS
from checkers.audit.knowledge import LIBRARIES, Library
from checkers.audit.rules.registry import RULES

Table = tuple[str, Sequence[str], list[Sequence[str]]]


def tables() -> Iterator[Table]:
    """All tables of the page."""
    rules = [RULES.load(name) for name in RULES.names()]
    yield (
        "Rules",
        ("rule", "kind", "dimension", "severity", "fires when", "fix"),
        [(f"`{r.id}`", r.kind, r.dimension, r.severity, r.title, r.fixes[""]) for r in rules],
    )
    yield (
        "Kinds of failure",
        ("kind", "name", "what must hold", "rules", "checkers of a run"),
        [
            (
                f"`{name}`",
                kind.name,
                kind.must,
                ", ".join(f"`{r.id}`" for r in rules if r.kind == name) or "nothing yet",
                ", ".join(f"`{checker}`" for checker in kind.live),
            )
            for name, kind in KINDS.items()
        ],
    )
    yield (
        "What is known of libraries",
        ("library", "lease", "acquire fails by", "a with-block without the lock", "renewed by"),
        [_library(library) for library in LIBRARIES.values()],
    )


def _library(library: Library) -> Sequence[str]:
    if library.lease == "session":
        lease = "the session"
    else:
        unit = "s" if library.lease_unit_ns == 1_000_000_000 else "ms"
        default_ns = library.lease_default_ns
        without = "none" if default_ns is None else f"{default_ns / library.lease_unit_ns:g} {unit}"
        lease = f"`{library.lease_args[0]}` in {unit}, default {without}"
    runs = "does not run" if library.with_raises else "runs"
    renewed = ", ".join(f"`{m}`" for m in (*library.renews_by, *library.renewing_args))
    return (f"`{library.name}`", lease, library.acquire_fails_by, runs, renewed or "nothing")
