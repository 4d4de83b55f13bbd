"""What the four clock faults share: a wall clock of its own for one server or worker.

Jump: the clock steps once and stays off until the heal steps it back.  Skew: it runs fast or
slow, away from the true time.  Both are done by the clock shim (clockshim/), under which the
processes of a run are started if its plan holds such a fault (``needs_clock_shim``).  The
monotonic clock, by which the harness judges, is never touched.

Proof: the clock is read back (a server is asked for its TIME, a worker's is read by a witness
under the same shim) and compared with what it should say.

In containers the shim is bound into the server's (compose/docker_clock.py).

Traps: Go reads the time without libc, so etcd is out of reach.  After a jump forward the heal is a
step back: a key that was set meanwhile lives longer by the jump.  A worker's fault bites only if
its library looks at the wall clock; the evidence says how often it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from harness.core import limits
from harness.core.clock import NS_PER_MS, ms
from harness.core.errors import HarnessError
from harness.core.protocols import (
    ClockReading,
    Evidence,
    Node,
    Place,
    Skewable,
    WorkerHandle,
    World,
)
from harness.core.undo import Step
from nemesis.base import MachineFault, each, node_answers, pick, prove
from nemesis.clockshim import build
from nemesis.params import Parameter

LOOSE_NS = 2 * NS_PER_MS  # beyond the error of a reading
SHOWS_MS = 60  # a slow drift gets time to come to this: the readings of ZooKeeper are loose
PPM = 1_000_000
Machine = Node | WorkerHandle
M = TypeVar("M", Node, WorkerHandle)

JUMP_PARAMETERS = (
    Parameter("offset_ms", int, "ms", 10_000, "how far the clock steps", 200, 86_400_000),
    Parameter(
        "direction", str, "", "forward", "where it steps to", choices=("forward", "backward")
    ),
)
SKEW_PARAMETERS = (
    Parameter("rate_ppm", int, "ppm", 500_000, "by how much its rate is wrong", 10_000, 900_000),
    Parameter("direction", str, "", "fast", "how it runs", choices=("fast", "slow")),
)


class ClockFault(MachineFault):
    """Sets clocks, reads them back, sets them right."""

    needs_clock_shim: ClassVar[bool] = True

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._set_ns: dict[str, tuple[int, int]] = {}  # between which moments it was set

    def can(self, place: Place) -> str | None:
        if place.runtime == "sim":
            return super().can(place)
        return super().can(place) or build.why_not()

    def _machines(self, world: World, targets: Sequence[str]) -> list[Machine]:
        """Targets are names of what ``acts_on`` says."""
        if self.acts_on == "node":
            return list(pick(world.cluster.nodes.values(), targets, "node"))
        return list(pick(world.workers, targets, "worker"))

    def _wanted(self) -> tuple[int, int]:
        """(offset in ns, rate in ppm) by the parameters, with their signs."""
        sign = -1 if self.params["direction"] in ("backward", "slow") else 1
        return (
            sign * ms(self.params.get("offset_ms", 0)),
            sign * int(self.params.get("rate_ppm", 0)),
        )

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [
            step
            for machine in self._machines(world, targets)
            for step in skewable(machine).undo_clock()
        ]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        offset_ns, rate_ppm = self._wanted()
        for machine in self._machines(world, targets):
            self._remember(machine)
            before_ns = world.clock.now()
            skewable(machine).set_clock(offset_ns=offset_ns, rate_ppm=rate_ppm)
            self._set_ns[machine.name] = before_ns, world.clock.now()

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        def off(machine: Machine) -> Evidence:
            return self._off(world, machine)

        rate_ppm = abs(self._wanted()[1])
        drift_ms = SHOWS_MS * PPM // rate_ppm if rate_ppm else 0
        machines = self._machines(world, targets)
        return self._prove(world, machines, off, limits.EVIDENCE_TIMEOUT_MS + drift_ms)

    def _off(self, world: World, machine: Machine) -> Evidence:
        """It says what it was told to say, and that cannot be taken for the true time."""
        offset_ns, rate_ppm = self._wanted()
        set_early_ns, set_late_ns = self._set_ns[machine.name]
        before_ns = world.clock.now()
        seen = skewable(machine).clock_reading()
        after_ns = world.clock.now()
        # It was set at some moment and read at some moment, so what it should say has bounds too.
        early_ns = offset_ns + (before_ns - set_late_ns) * rate_ppm // PPM
        late_ns = offset_ns + (after_ns - set_early_ns) * rate_ppm // PPM
        wanted_ns = (early_ns + late_ns) // 2
        loose_ns = seen.error_ns + LOOSE_NS + abs(late_ns - early_ns) // 2
        fits = abs(seen.offset_ns - wanted_ns) <= loose_ns and abs(wanted_ns) >= 3 * loose_ns
        return Evidence(
            fits,
            f"its clock is {_words(seen)}, told to be {wanted_ns / NS_PER_MS:+.1f} ms",
            {"offset_ns": seen.offset_ns, "wanted_ns": wanted_ns, "error_ns": seen.error_ns}
            | ({} if seen.reads is None else {"reads": seen.reads}),
        )

    def heal(self, world: World, targets: Sequence[str]) -> None:
        def put_right(machine: Machine) -> None:
            skewable(machine).set_clock(offset_ns=0, rate_ppm=0)

        each(self._mine(self._machines(world, targets)), put_right)

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        def right(machine: Machine) -> Evidence:
            return self._right(world, machine)

        machines = self._machines(world, targets)
        return prove(world, machines, right, limits.HEAL_TIMEOUT_MS)

    def _right(self, world: World, machine: Machine) -> Evidence:
        """It says the true time, and the reading is good enough to tell that from the fault."""
        seen = skewable(machine).clock_reading()
        loose_ns = seen.error_ns + LOOSE_NS
        right = abs(seen.offset_ns) <= loose_ns
        if machine.name in self._set_ns:
            offset_ns, rate_ppm = self._wanted()
            since_ns = world.clock.now() - self._set_ns[machine.name][1]
            right = right and abs(offset_ns + since_ns * rate_ppm // PPM) >= 3 * loose_ns
        lives = machine.status().state == "running"
        if self.acts_on == "node":
            lives = node_answers(machine).bit  # type: ignore[arg-type]  # acts_on says it is one
        return Evidence(
            right and lives,
            f"{machine.status().state}, its clock is {_words(seen)}",
            {"offset_ns": seen.offset_ns, "error_ns": seen.error_ns},
        )


class NodeClockFault(ClockFault):
    """On servers."""

    acts_on = "node"
    families: ClassVar[tuple[str, ...]] = ("redis", "postgres", "zookeeper")
    refused: ClassVar[Mapping[str, str]] = {
        "etcd": "Go reads the clock past libc, where no shim reaches it",
    }


class WorkerClockFault(ClockFault):
    """On clients, which are processes of this machine in both real runtimes."""

    acts_on = "worker"
    runtimes: ClassVar[tuple[str, ...]] = ("docker", "process")
    refused: ClassVar[Mapping[str, str]] = {"sim": "a simulated client reads no wall clock"}


def skewable(machine: Machine) -> Skewable:
    """HarnessError if it has no clock of its own."""
    if not isinstance(machine, Skewable):
        raise HarnessError(f"{machine.name} has no clock of its own, so none can be set")
    return machine


def _words(seen: ClockReading) -> str:
    looks = "" if seen.reads is None else f" (looked at {seen.reads} times while it was off)"
    return f"{seen.offset_ns / NS_PER_MS:+.1f} ms off{looks}"
