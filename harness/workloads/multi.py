"""multi: several locks at once, in one order or in any (K24).

Each section takes ``locks`` of the scenario's keys, works, writes to the resource of each and
releases them in the opposite order.  With ``order = "sorted"`` nobody can wait in a circle; with
``"any"`` the order is drawn, and two clients that have one lock each wait for each other's.

Trap: a section that is refused one of its locks gives back those that it has before it tries again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from harness.core.history import Type
from harness.generator import Completion, Generator, SectionSpec, Step, draw
from harness.workloads.base import Kind
from nemesis.params import Parameter

_OK = str(Type.OK)


class Multi(Kind):
    """Sections under several locks."""

    kind = "multi"
    says = "sections that take several locks, work, write under each, and release them all"
    shows = "clients that wait for each other in a circle"
    parameters = (
        Parameter("locks", int, "locks", 2, "taken by one section (at most keys)", 2, 16),
        Parameter(
            "order", str, "", "sorted", "in which a section takes them", choices=("sorted", "any")
        ),
    )

    def leaf(
        self, spec: SectionSpec, params: Mapping[str, Any], *, worker: int, until_ns: int
    ) -> Generator:
        idle_ns = draw(spec.seed, worker, 0, 0, span=spec.idle_ns)
        return Sections(
            spec, worker, until_ns, int(params["locks"]), params["order"] == "any", at_ns=idle_ns
        )

    def longest_ns(self, spec: SectionSpec, params: Mapping[str, Any]) -> int:
        waits_ns = spec.timeout_ms * 1_000_000 * int(params["locks"])
        return spec.hold_ns[1] + waits_ns


class Held(msgspec.Struct, frozen=True, gc=False):
    """A lock that this section has."""

    key: str
    hold: str
    token: int | None


class Sections(msgspec.Struct, frozen=True, gc=False):
    """One worker's loop.  stage: idle -> take (each lock) -> write (each) -> give (each)."""

    spec: SectionSpec
    worker: int
    until_ns: int
    locks: int
    any_order: bool
    number: int = 0
    stage: str = "idle"
    at_ns: int = 0
    wanted: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()
    written: int = 0

    def op(self, worker: int, now_ns: int) -> tuple[Step | None, Sections]:
        """The next step of this worker."""
        if self.stage == "idle":
            at_ns = max(self.at_ns, now_ns)
            if at_ns >= self.until_ns:
                return None, self
            begun = replace(self, stage="take", at_ns=at_ns, wanted=self._choose())
            return begun._take(at_ns), begun
        if self.stage == "take":
            return self._take(now_ns), self
        if self.stage == "write" and self.written < len(self.held) * self.spec.writes:
            held = self.held[self.written % len(self.held)]
            resource = f"r{held.key[1:]}"
            return Step(worker, self.at_ns, "write", resource, held.hold, token=held.token), self
        last = self.held[-1]
        return Step(worker, now_ns, "release", last.key, last.hold), replace(self, stage="give")

    def update(self, event: Completion) -> Sections:
        """The loop after one of this worker's steps ended."""
        now_ns = event.time_ns
        if event.do == "acquire":
            return self._taken(event) if event.type == _OK else self._give_up(now_ns)
        if event.do == "write":
            return replace(self, written=self.written + 1, at_ns=now_ns)
        if event.do == "release":
            left = self.held[:-1]
            return replace(self, held=left, stage="give") if left else self._next(now_ns)
        return self._next(now_ns)

    def _choose(self) -> tuple[str, ...]:
        """Different keys, drawn; sorted unless any order will do."""
        left = list(range(self.spec.keys))
        found = []
        for turn in range(min(self.locks, self.spec.keys)):
            span = (0, len(left) - 1)
            found.append(
                left.pop(draw(self.spec.seed, self.worker, self.number, 10 + turn, span=span))
            )
        return tuple(f"k{key}" for key in (found if self.any_order else sorted(found)))

    def _take(self, at_ns: int) -> Step:
        turn, spec = len(self.held), self.spec
        hold = f"{spec.name}{self.worker}-{self.number}.{turn}"
        key = self.wanted[turn]
        return Step(self.worker, at_ns, "acquire", key, hold, spec.ttl_ms, spec.timeout_ms)

    def _taken(self, event: Completion) -> Sections:
        turn = len(self.held)
        hold = f"{self.spec.name}{self.worker}-{self.number}.{turn}"
        held = (*self.held, Held(self.wanted[turn], hold, event.token))
        if len(held) < len(self.wanted):
            return replace(self, held=held)
        hold_ns = draw(self.spec.seed, self.worker, self.number, 2, span=self.spec.hold_ns)
        return replace(self, stage="write", held=held, written=0, at_ns=event.time_ns + hold_ns)

    def _give_up(self, now_ns: int) -> Sections:
        return replace(self, stage="give") if self.held else self._next(now_ns)

    def _next(self, now_ns: int) -> Sections:
        number = self.number + 1
        idle_ns = draw(self.spec.seed, self.worker, number, 0, span=self.spec.idle_ns)
        return replace(
            self, number=number, stage="idle", at_ns=now_ns + idle_ns, wanted=(), held=(),
            written=0,
        )  # fmt: skip
