"""job: every tick's work is to be done once, by whoever gets the lock (K19, K23, K25).

All workers wake up at every tick (a little apart), take the lock, look whether the tick's work is
done, do it if not, and release.  With ``look = "no"`` nobody looks: who waited for the lock does
the work again, which a mutex alone does not prevent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from harness.core.clock import NS_PER_MS
from harness.core.history import Type
from harness.generator import Completion, Generator, SectionSpec, Step, draw
from harness.workloads.base import Kind
from nemesis.params import Parameter

_OK = str(Type.OK)


class Job(Kind):
    """One effect per tick."""

    kind = "job"
    says = "at every tick all workers want to do its work, which is to be done once"
    shows = "work done twice: by two holders, or by one who did not look after its wait"
    parameters = (
        Parameter("tick_ms", int, "ms", 300, "between two ticks", 1, 3_600_000),
        Parameter("skew_ms", int, "ms", 30, "how far apart workers wake up", 0, 60_000),
        Parameter(
            "look", str, "", "yes", "whether the work is done already", choices=("yes", "no")
        ),
    )

    def leaf(
        self, spec: SectionSpec, params: Mapping[str, Any], *, worker: int, until_ns: int
    ) -> Generator:
        return Ticks(
            spec,
            worker,
            until_ns,
            int(params["tick_ms"]) * NS_PER_MS,
            int(params["skew_ms"]) * NS_PER_MS,
            params["look"] == "yes",
        )


class Ticks(msgspec.Struct, frozen=True, gc=False):
    """One worker's loop.  stage: idle -> acquire -> read -> write -> release -> idle."""

    spec: SectionSpec
    worker: int
    until_ns: int
    tick_ns: int
    skew_ns: int
    look: bool
    tick: int = 1
    stage: str = "idle"
    at_ns: int = 0
    token: int | None = None

    @property
    def hold(self) -> str:
        return f"{self.spec.name}{self.worker}-{self.tick}"

    def op(self, worker: int, now_ns: int) -> tuple[Step | None, Ticks]:
        """The next step of this worker; ticks that it missed are left out."""
        spec = self.spec
        if self.stage == "idle":
            tick = max(self.tick, -(-(now_ns - self.skew_ns) // self.tick_ns))
            skew_ns = draw(spec.seed, self.worker, tick, 0, span=(0, self.skew_ns))
            at_ns = tick * self.tick_ns + skew_ns
            if at_ns >= self.until_ns:
                return None, self
            begun = replace(self, tick=tick, stage="acquire")
            return (
                Step(worker, at_ns, "acquire", "k0", begun.hold, spec.ttl_ms, spec.timeout_ms),
                begun,
            )
        if self.stage == "read":
            return Step(worker, now_ns, "read", "r0", self.hold), self
        if self.stage == "write":
            step = Step(
                worker, self.at_ns, "write", "r0", self.hold, token=self.token, tick=self.tick
            )
            return step, self
        return Step(worker, now_ns, "release", "k0", self.hold), self

    def update(self, event: Completion) -> Ticks:
        """The loop after one of this worker's steps ended."""
        if event.do == "acquire" and event.type == _OK:
            return replace(self, stage="read", token=event.token)
        if event.do == "read":
            if event.type == _OK and not (self.look and _done(event.value, self.tick)):
                hold_ns = draw(self.spec.seed, self.worker, self.tick, 2, span=self.spec.hold_ns)
                return replace(self, stage="write", at_ns=event.time_ns + hold_ns)
            return replace(self, stage="release")
        if event.do == "write":
            return replace(self, stage="release")
        return replace(self, stage="idle", tick=self.tick + 1, token=None)


def _done(read: Any, tick: int) -> bool:
    """Whether the resource's last write was of this tick or a later one."""
    value = read.get("value") if isinstance(read, dict) else None
    last = value.get("tick") if isinstance(value, dict) else None
    return isinstance(last, int) and last >= tick
