"""worker-block-loop: the client's main thread, and with it its event loop, does nothing else.

A callback that computes for seconds, a synchronous call inside a coroutine.  Threads of the
process run on: a lease that is renewed by a thread is kept, one that is renewed by the loop is
lost, though the process is busy and healthy.  Proof: the process runs and calls itself blocked
(docs/reference/worker-protocol.md says how a worker does that).

Traps: a worker that does not take the signals would be killed by them, so its table of caught
signals is read first.  A client that is inside a C call is blocked only when that returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Blockable, Evidence, WorkerHandle, World
from harness.core.undo import Step
from nemesis.base import WorkerFault, each, prove


class WorkerBlockLoop(WorkerFault):
    """Blocks the main threads of workers and lets them go on."""

    kind = "worker-block-loop"
    summary = "blocks a client's main thread and event loop; its other threads run on"
    runtimes: ClassVar[tuple[str, ...]] = ("docker", "process")
    refused: ClassVar[Mapping[str, str]] = {"sim": "a simulated client has no threads"}

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [
            step for worker in self._workers(world, targets) for step in _able(worker).undo_block()
        ]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for worker in self._workers(world, targets):
            self._remember(worker)
            _able(worker).block()

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._workers(world, targets), lambda one: _look(one, True))

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(self._workers(world, targets)), lambda worker: _able(worker).unblock())

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        workers = self._workers(world, targets)
        return prove(world, workers, lambda one: _look(one, False), limits.HEAL_TIMEOUT_MS)


def _look(worker: WorkerHandle, wanted: bool) -> Evidence:
    state, blocked = worker.status().state, _able(worker).is_blocked()
    return Evidence(
        state == "running" and blocked is wanted,
        f"process is {state}, its main thread is {'blocked' if blocked else 'free'}",
        {"state": state, "blocked": blocked},
    )


def _able(worker: WorkerHandle) -> Blockable:
    if not isinstance(worker, Blockable):
        raise HarnessError(f"{worker.name} has no thread that could be blocked")
    return worker
