"""Workers that are users of one process: the pool of a run over fewer processes than workers.

    pool = SharedPool(ProcessPool(argv, workers=2, users=3, ...), workers=6, together=3)

Worker 4 is user 1 of the second process.  What is above sees six workers with one request each in
flight; a process that says hello or dies does so for all of its users.  Their handles are one and
the same: whoever is hit, all of them are.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harness.core.messages import PoolEvent, Request
from harness.core.protocols import WorkerHandle
from harness.workers import ProcessPool


class SharedPool:
    """harness.core.messages.WorkerPool over the processes of another."""

    def __init__(self, pool: ProcessPool, *, workers: int, together: int) -> None:
        self.handles: list[WorkerHandle] = [pool.handles[w // together] for w in range(workers)]
        self._pool, self._together = pool, together
        self._asked: dict[int, int] = {}  # request -> worker

    def send(self, worker: int, request: Request) -> None:
        request.user = worker % self._together
        self._asked[request.id] = worker
        self._pool.send(worker // self._together, request)

    def poll(self, deadline_ns: int) -> list[PoolEvent]:
        return [one for event in self._pool.poll(deadline_ns) for one in self._each(event)]

    def wake(self) -> None:
        self._pool.wake()

    def restart(self, worker: int) -> None:
        self._pool.restart(worker // self._together)

    def close(self) -> None:
        self._pool.close()

    def _each(self, event: PoolEvent) -> Iterator[PoolEvent]:
        """The event as the workers see whom it is about."""
        first, reply = event.worker * self._together, event.reply
        if reply is None or reply.event == "hello":
            for worker in range(first, first + self._together):
                yield msgspec.structs.replace(event, worker=worker)
        elif reply.event:
            yield msgspec.structs.replace(event, worker=first + reply.user)
        else:
            worker = self._asked.pop(reply.id, first)
            yield msgspec.structs.replace(event, worker=worker)
