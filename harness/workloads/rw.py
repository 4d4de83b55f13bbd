"""rw: readers that share the lock, and writers that are alone.

A reader reads the resource when it comes in and again before it leaves; under a lock that keeps
writers out both reads are the same.  A writer reads when it comes in and writes before it leaves.
Which of the two a section is, is drawn.

Trap: readers that never meet, or a writer that nobody keeps out, show nothing; ``vacuity`` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from harness.generator import Completion, Generator, Section, SectionSpec, Step, draw
from harness.workloads.base import Kind
from nemesis.params import Parameter

READ, WRITE = "read", "write"


class ReadWrite(Kind):
    """Sections of readers and of writers under one read/write lock."""

    kind = "rw"
    says = "readers, who share the lock and read twice, and writers, who are alone in it"
    shows = "a writer among readers, two writers, writers that never get in"
    needs = "read"
    parameters = (
        Parameter("readers_pct", int, "%", 70, "share of the sections that only read", 1, 99),
    )

    def leaf(
        self, spec: SectionSpec, params: Mapping[str, Any], *, worker: int, until_ns: int
    ) -> Generator:
        spec = replace(spec, read_early=spec.writes > 0)
        inner = Section.of(spec, worker=worker, until_ns=until_ns)
        return ReadersAndWriters(inner, int(params["readers_pct"]))


class ReadersAndWriters(msgspec.Struct, frozen=True, gc=False):
    """A loop of sections, each of which only reads or also writes."""

    inner: Section
    readers_pct: int

    @property
    def mode(self) -> str:
        """Of the present section."""
        inner = self.inner
        drawn = draw(inner.spec.seed, inner.worker, inner.number, 4, span=(1, 100))
        return READ if drawn <= self.readers_pct else WRITE

    def op(self, worker: int, now_ns: int) -> tuple[Step | None, ReadersAndWriters]:
        """The next step of this worker."""
        step, inner = self.inner.op(worker, now_ns)
        after = replace(self, inner=inner)
        if step is None:
            return None, after
        if step.do == "acquire":
            step = replace(step, mode=self.mode)
        elif step.do == "write" and self.mode == READ:
            step = replace(step, do="read", token=None)
        return step, after

    def update(self, event: Completion) -> ReadersAndWriters:
        """The loop after one of this worker's steps ended."""
        if event.do == "read" and self.mode == READ and self.inner.has_read:
            event = replace(event, do="write")  # the read that a writer's write stands for
        return replace(self, inner=self.inner.update(event))
