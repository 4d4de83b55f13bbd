"""Simulated workers behind the interface of the real pool (``messages.WorkerPool``).

    for event in pool.poll(deadline_ns): ...     # this is what moves virtual time on

Events that happen while somebody else waits on the clock (a fault that looks for evidence) are
kept and given out by the next ``poll``, with the instants at which they happened.
"""

from __future__ import annotations

from collections.abc import Sequence

from clients.sim.clock import SimClock
from clients.sim.worker import SimWorker
from harness.core.messages import PoolEvent, Request
from harness.core.protocols import WorkerHandle


class SimPool:
    """The workers of one simulated world; ``outbox`` is where they put their events."""

    def __init__(
        self, clock: SimClock, workers: Sequence[SimWorker], outbox: list[PoolEvent]
    ) -> None:
        self.handles: list[WorkerHandle] = list(workers)
        self._workers = list(workers)
        self._clock, self._outbox = clock, outbox
        self._woken = False

    def send(self, worker: int, request: Request) -> None:
        """Hands a request over at this instant; a dead worker's is lost."""
        self._workers[worker].hand_over(request)

    def poll(self, deadline_ns: int) -> list[PoolEvent]:
        """All events of the next instant that has any, or [] once the deadline is reached."""
        outbox = self._outbox
        if not outbox and not self._woken:
            self._clock.run(deadline_ns, outbox)
        self._woken = False
        events = outbox.copy()
        outbox.clear()
        return events

    def wake(self) -> None:
        """The next ``poll`` returns at once (there is only one thread)."""
        self._woken = True

    def restart(self, worker: int) -> None:
        """Starts a dead worker anew; the event ``hello`` follows."""
        self._workers[worker].start()

    def close(self) -> None:
        """Ends all workers without a word."""
        for worker in self._workers:
            worker.kill()
        self._outbox.clear()
