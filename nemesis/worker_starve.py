"""worker-starve: a client gets a small share of the processor, in short turns.

A noisy neighbour, a CPU quota that is used up: the client is never stopped for long, but its
renewals, time-outs and work all take a multiple of their time.  Done by stopping the process and
letting it go on, ``period_ms`` by ``period_ms`` (SIGSTOP and SIGCONT from a thread).  Proof: the
system is asked in short steps and says *stopped* in about that share of the looks, and *running*
in some; a busy process gets the rest of the time at most.

Traps: a paused client is at a standstill, a starved one is not, so both faults on one client make
no sense and are kept apart.  Undo is one SIGCONT, but only once this thread is gone; a harness
that was killed has no threads.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.core import limits
from harness.core.clock import NS_PER_S, ms
from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, WorkerHandle, World
from harness.core.undo import Step
from nemesis.base import WorkerFault, each, prove
from nemesis.params import Parameter

LOOKS = 40  # spread over whole periods
PERIODS = 4
TOLERANCE_PERCENT = 25  # of looks; signals and looks are late on a busy machine


class WorkerStarve(WorkerFault):
    """Lets workers run in short turns only."""

    kind = "worker-starve"
    summary = "leaves a client a small share of the processor, in short turns"
    runtimes: ClassVar[tuple[str, ...]] = ("docker", "process")
    refused: ClassVar[Mapping[str, str]] = {"sim": "a simulated client takes no processor time"}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("share_percent", int, "%", 10, "of the time it may run", 1, 60),
        Parameter("period_ms", int, "ms", 100, "from turn to turn", 20, 250),
    )

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._turns: dict[str, _Turns] = {}

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [step for worker in self._workers(world, targets) for step in worker.undo_pause()]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        period_ns = ms(self.params["period_ms"])
        run_ns = period_ns * self.params["share_percent"] // 100
        for worker in self._workers(world, targets):
            self._remember(worker)
            self._turns[worker.name] = _Turns(worker, run_ns=run_ns, stop_ns=period_ns - run_ns)

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        def starved(worker: WorkerHandle) -> Evidence:
            return self._starved(world, worker)

        return self._prove(world, self._workers(world, targets), starved)

    def _starved(self, world: World, worker: WorkerHandle) -> Evidence:
        """Looks at moments that are spread evenly over the turn, whatever its phase."""
        period_ns = ms(self.params["period_ms"])
        start_ns, stopped = world.clock.now(), 0
        for look in range(LOOKS):
            world.clock.sleep_until(start_ns + PERIODS * period_ns * look // LOOKS)
            stopped += worker.status().state == "paused"
        status, failure = worker.status(), self._turns[worker.name].failure
        percent, wanted = 100 * stopped // LOOKS, 100 - self.params["share_percent"]
        same = not self._is_new(worker.name, status)
        return Evidence(
            same
            and not failure
            and stopped > 0
            and percent >= wanted - TOLERANCE_PERCENT
            and self._turns[worker.name].turns > 1,
            f"stopped in {stopped} of {LOOKS} looks, {self._turns[worker.name].turns} turns"
            + (f"; {failure}" if failure else "")
            + ("" if same else "; started anew"),
            {"stopped_percent": percent, "wanted_percent": wanted, "state": status.state},
        )

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(self._workers(world, targets)), self._end)

    def _end(self, worker: WorkerHandle) -> None:
        self._turns[worker.name].end()

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        def runs(worker: WorkerHandle) -> Evidence:
            return self._runs(world, worker)

        return prove(world, self._workers(world, targets), runs, limits.HEAL_TIMEOUT_MS)

    def _runs(self, world: World, worker: WorkerHandle) -> Evidence:
        """Running at every look over one whole turn."""
        period_ns, start_ns = ms(self.params["period_ms"]), world.clock.now()
        states = set()
        for look in range(LOOKS // PERIODS + 1):
            world.clock.sleep_until(start_ns + PERIODS * period_ns * look // LOOKS)
            states.add(worker.status().state)
        return Evidence(
            states == {"running"},
            f"process is {' and '.join(sorted(states))}",
            {"states": sorted(states)},
        )


class _Turns:
    """The thread that stops one worker and lets it go on; ``end`` leaves it running."""

    def __init__(self, worker: WorkerHandle, *, run_ns: int, stop_ns: int) -> None:
        self._worker, self._run_ns, self._stop_ns = worker, run_ns, stop_ns
        self._over = threading.Event()
        self.turns = 0
        self.failure = ""
        name = f"starve-{worker.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        identity = self._worker.status().identity
        try:
            while not self._over.is_set():
                if self._worker.status().identity != identity:
                    return  # another process has its place: leave that one alone
                self._worker.pause()
                self._over.wait(self._stop_ns / NS_PER_S)
                self._worker.resume()
                self.turns += 1
                self._over.wait(self._run_ns / NS_PER_S)
        except (HarnessError, OSError) as error:  # it died under our hands
            self.failure = str(error)

    def end(self) -> None:
        """Ends the turns; HarnessError if the thread does not."""
        self._over.set()
        self._thread.join(limits.WORKER_STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise HarnessError(f"{self._thread.name}: the thread did not end")
