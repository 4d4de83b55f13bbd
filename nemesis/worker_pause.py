"""worker-pause: the client stops (SIGSTOP), as in a long garbage collection or a paused VM.

Its lease runs out meanwhile and it wakes up believing that it still holds: the classic way to two
holders.  Proof: the system reports the process as stopped.

Trap: the signal takes effect a moment after it was sent, hence the looking again.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core import limits
from harness.core.protocols import Evidence, WorkerHandle, World
from harness.core.undo import Step
from nemesis.base import WorkerFault, each, prove


class WorkerPause(WorkerFault):
    """Pauses workers and resumes them; the same process goes on."""

    kind = "worker-pause"
    summary = "stops a client in its tracks (SIGSTOP) and lets it go on later"

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [step for worker in self._workers(world, targets) for step in worker.undo_pause()]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for worker in self._workers(world, targets):
            self._remember(worker)
            worker.pause()

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._workers(world, targets), self._paused)

    def _paused(self, worker: WorkerHandle) -> Evidence:
        status = worker.status()
        new = self._is_new(worker.name, status)
        return Evidence(
            status.state == "paused" and not new,
            f"process is {status.state}" + (", and was started anew" if new else ""),
            {"state": status.state, "identity": status.identity},
        )

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(self._workers(world, targets)), lambda worker: worker.resume())

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        return prove(world, self._workers(world, targets), _runs, limits.HEAL_TIMEOUT_MS)


def _runs(worker: WorkerHandle) -> Evidence:
    status = worker.status()
    return Evidence(
        status.state == "running",
        f"process is {status.state}",
        {"state": status.state, "identity": status.identity},
    )
