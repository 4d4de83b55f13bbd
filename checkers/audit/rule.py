"""The shape of an audit rule: data about the gap, and a function from facts to places.

    Rule(id="A-ID-2", ..., check=constant_token)
    for hit in rule.check(facts): ...

A rule looks at facts and never at text, so one rule serves every language whose reader gives those
facts.  Traps: a value that is absent is not known; a rule that takes it for None invents findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from checkers.audit.model import Dimension, Fact, Finding, Place, Severity


@dataclass(frozen=True)
class Facts:
    """Everything that was read; rules ask for a kind."""

    all: tuple[Fact, ...]
    code_files: int = 0  # files of source code among them

    def of(self, *kinds: str) -> Iterator[Fact]:
        """Facts of these kinds, in the order of files and lines."""
        return (fact for fact in self.all if fact.kind in kinds)


@dataclass(frozen=True)
class Hit:
    """A place where a rule fires, in words that name what stands there."""

    fact: Fact
    says: str
    place: Place | None = None
    dimension: Dimension | None = None
    severity: Severity | None = None
    steps: tuple[str, ...] = ()  # what was seen to happen, instead of the rule's own interleaving
    replay: str = ""


@dataclass(frozen=True)
class Rule:
    """One row of the table of rules.  ``fixes`` by library, then language; "" is for all others."""

    id: str
    kind: str
    dimension: Dimension
    severity: Severity
    title: str
    interleaving: tuple[str, ...]
    fixes: Mapping[str, str]
    check: Callable[[Facts], Iterable[Hit]]
    also: tuple[Dimension, ...] = field(default=())

    def findings(self, facts: Facts) -> list[Finding]:
        """All findings of this rule."""
        return [self._finding(hit) for hit in self.check(facts)]

    def _finding(self, hit: Hit) -> Finding:
        where = hit.place or hit.fact.place
        library = str(hit.fact.get("library", ""))
        language = str(hit.fact.get("language", ""))
        dimension = hit.dimension or self.dimension
        others = {*self.also, self.dimension} - {dimension} if self.also else set()
        return Finding(
            rule=self.id,
            kind=self.kind,
            dimension=dimension,
            severity=hit.severity or self.severity,
            path=where.path,
            line=where.line,
            end_line=max(where.end_line, where.line),
            column=where.column,
            says=hit.says,
            interleaving=hit.steps or self.interleaving,
            fix=self.fixes.get(library) or self.fixes.get(language) or self.fixes[""],
            also=tuple(sorted(others)),
            replay=hit.replay,
        )


def seconds(ns: int) -> str:
    """A duration for people: ``30 s``, ``0.5 s``."""
    return f"{ns / 1_000_000_000:g} s"
