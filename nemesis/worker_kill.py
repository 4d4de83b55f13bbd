"""worker-kill: the client dies at once (SIGKILL) and is started anew when the fault heals.

A lock it held stays until its lease ends; a lock without a lease stays for ever.  Proof: the
process is gone, or another one has taken its place already.

Trap: the harness may restart a dead worker by itself, so *dead* need not last; the identity (pid
and start time) tells the two apart.  There is nothing to undo after a crash of the harness.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core import limits
from harness.core.protocols import Evidence, WorkerHandle, World
from harness.core.undo import Step
from nemesis.base import WorkerFault, each, prove


class WorkerKill(WorkerFault):
    """Kills workers; ``heal`` starts new processes in their place."""

    kind = "worker-kill"
    summary = "kills a client (SIGKILL); a new one takes its place when the fault heals"

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return []

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for worker in self._workers(world, targets):
            self._remember(worker)
            worker.kill()

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._workers(world, targets), self._gone)

    def _gone(self, worker: WorkerHandle) -> Evidence:
        status = worker.status()
        new = status.state != "dead" and self._is_new(worker.name, status)
        return Evidence(
            status.state == "dead" or new,
            "a new process runs in its place" if new else f"process is {status.state}",
            {"state": status.state, "identity": status.identity},
        )

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(self._workers(world, targets)), lambda worker: worker.start())

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        workers = self._workers(world, targets)
        return prove(world, workers, self._replaced, limits.HEAL_TIMEOUT_MS)

    def _replaced(self, worker: WorkerHandle) -> Evidence:
        status = worker.status()
        new = self._is_new(worker.name, status)
        return Evidence(
            status.state == "running" and new,
            f"process is {status.state} and {'new' if new else 'the old one'}",
            {"state": status.state, "identity": status.identity},
        )
