"""The page of the audit in docs/reference: rules, kinds of failure, what is known of libraries.

tables()    # (title, head, rows) in the order of the page
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.audit.kinds import KINDS
from checkers.audit.knowledge import LIBRARIES, Library
from checkers.audit.knowledge_code import CODE_LIBRARIES, CodeLibrary, Method
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
    yield (
        "What is known of libraries in other languages",
        ("library", "language", "taken by", "lease", "renewed by", "freed by", "read in version"),
        [_code_library(library) for library in CODE_LIBRARIES.values()],
    )


_UNITS = {1: "a duration with its unit", 1_000_000: "ms", 1_000_000_000: "s"}


def _code_library(library: CodeLibrary) -> Sequence[str]:
    units = {_UNITS[m.lease_unit_ns] for m in library.acquires if m.lease_at >= 0 and m.unit_at < 0}
    if any(m.unit_at >= 0 for m in library.acquires):
        units.add("in the TimeUnit given")
    if library.lease_options:
        units.add(f"`{library.lease_options[0]}` in {_UNITS[library.lease_unit_ns]}")
    default_ns = library.lease_default_ns
    if default_ns is not None:
        units.add(f"default {default_ns / 1_000_000_000:g} s")
    lease = "the session" if library.lease == "session" else ", ".join(sorted(units))
    renewed = sorted({f"`{m.name}`" for m in library.renews})
    if library.renewing or any(m.renewing for m in library.acquires):
        renewed.append("itself")
    return (
        f"`{library.name}`",
        library.language,
        ", ".join(_taken(library.acquires)) or "`@SchedulerLock`",
        lease or "`lockAtMostFor`, a bare number is ms",
        ", ".join(renewed) or "nothing",
        ", ".join(sorted({f"`{m.name}`" for m in library.releases})) or "the end of the block",
        library.read or "documentation only",
    )


def _taken(methods: Sequence[Method]) -> list[str]:
    found: dict[str, None] = {}
    for method in methods:
        refused = {"false": "false", "error": "an error"}.get(method.fails, "raises")
        runs = ", its block runs even so" if method.runs else ""
        found[f"`{method.name}` ({refused}{runs})"] = None
    return list(found)


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
