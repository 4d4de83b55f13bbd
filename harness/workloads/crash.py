"""crash: workers that die inside their critical section and come back as new processes (K05, K18).

Of ``every`` sections of a worker one ends in a crash, at a drawn point of it:

    granted     right after the answer to the acquire, before any work
    working     at a drawn moment of its work
    releasing   when all work is done, instead of the release

and in a drawn way: *kill* is SIGKILL, *exit* an end of the program that closes its client and
releases nothing.  The history has an operation ``crash`` for each, of unknown outcome like that of
every process that died, with its point; the new process has the next number of its worker.

What differs from the fault ``worker-kill``: here dying is what clients do, many times in a run, and
the seed decides which sections; a fault is aimed from outside, and may hit between sections.

Trap: a crash waits until no fault acts on its worker, or each would take the other's effect for its
own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from harness.core.clock import NS_PER_MS
from harness.generator import Completion, Crash, Generator, Section, SectionSpec, Step, draw
from harness.workloads.base import Kind
from nemesis.params import Parameter

POINTS = ("granted", "working", "releasing")
WAYS = ("kill", "exit")


class Crashing(Kind):
    """Sections of which some end in the death of their worker."""

    kind = "crash"
    says = "workers that die in their critical section, at a drawn point, and come back anew"
    shows = "locks without an end, late take-overs, permits that leak, halves of a section"
    crashes = True
    parameters = (
        Parameter("every", int, "sections", 4, "of which one ends in a crash", 1, 10_000),
        Parameter("point", str, "", "any", "where in the section", choices=("any", *POINTS)),
        Parameter("how", str, "", "any", "SIGKILL, or an end by itself", choices=("any", *WAYS)),
        Parameter("back_ms", int, "ms", 200, "until another process takes its place", 0, 600_000),
    )

    def leaf(
        self, spec: SectionSpec, params: Mapping[str, Any], *, worker: int, until_ns: int
    ) -> Generator:
        points = POINTS if params["point"] == "any" else (str(params["point"]),)
        ways = WAYS if params["how"] == "any" else (str(params["how"]),)
        inner = Section.of(spec, worker=worker, until_ns=until_ns)
        return Mortal(inner, int(params["every"]), points, ways, int(params["back_ms"]))


class Mortal(msgspec.Struct, frozen=True, gc=False):
    """A loop of sections, some of which end in a crash."""

    inner: Section
    every: int
    points: tuple[str, ...]
    ways: tuple[str, ...]
    back_ms: int

    @property
    def crash(self) -> Crash | None:
        """How the present section ends, None if well."""
        if (self._draw(20, self.every, section=0) + self.inner.number) % self.every:
            return None
        return Crash(
            self.ways[self._draw(21, len(self.ways))],
            self.points[self._draw(22, len(self.points))],
            self.back_ms,
        )

    def _draw(self, what: int, count: int, *, section: int | None = None) -> int:
        number = self.inner.number if section is None else section
        seed, worker = self.inner.spec.seed, self.inner.worker
        return draw(seed, worker, number, what, span=(0, count - 1))

    def op(self, worker: int, now_ns: int) -> tuple[Step | None, Mortal]:
        """The next step of this worker, which may be its last."""
        before = self.inner
        step, inner = before.op(worker, now_ns)
        crash = self.crash if before.stage == "work" else None
        if step is None or crash is None:
            return step, replace(self, inner=inner)
        at_ns = now_ns
        if crash.point == "working":
            at_ns = max(now_ns, self._moment_ns())
            if step.at_ns < at_ns:
                return step, replace(self, inner=inner)
        elif crash.point == "releasing":
            if step.do != "release":
                return step, replace(self, inner=inner)
            at_ns = step.at_ns
        return Step(worker, at_ns, "crash", before.key, before.hold, crash=crash), self

    def _moment_ns(self) -> int:
        inner = self.inner
        span = (inner.began_ns, max(inner.began_ns, inner.work_end_ns - NS_PER_MS))
        return draw(inner.spec.seed, inner.worker, inner.number, 23, span=span)

    def update(self, event: Completion) -> Mortal:
        """The loop after one of this worker's steps, or its life, ended."""
        return replace(self, inner=self.inner.update(event))
