"""redis-fifo-lock: ``FifoLock(client, name, lease_ms=).acquire(timeout=)``, a queue, for asyncio.

Tickets in arrival order, a lease that the library renews by itself four times a length, a fencing
token with each grant, and ``lease.lost``, an event that tells the holder of a loss.

Facts, read in 0.3.2's ``lock.py``:

- A wait that ends takes its ticket back, and *swallows* any trouble in doing so: then the ticket
  may be granted later, to nobody, for one lease.  That is recorded as unknown.
- The end of a lease rings at nobody: who waits asks the server again only every ``poll_ms``, by
  default 30 s, which its README calls latency only.  So a ticket whose client went away keeps the
  lock for up to 30 s, however short the lease (seen with a lease of 1 s: the next one got in after
  30.2 s; with ``poll_ms`` 250 after 1.3 s), and each further one as long again.  A server that
  restarts leaves one behind for every client that waited, and callers who give up before are
  granted nothing at all: what its README says of recovery within a lease does not hold then
  (server-restart in docs/survey.md).
- Not to be granted in time says that others stood before, not that anybody held it: no "busy".
- LeaseLost on release is the server's word.
- Renewal stops after ``max_hold_ms`` (half an hour).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from redis_fifo_lock import FifoLock, LeaseLost

from clients.adapters import redis_one as one
from clients.worker.adapter import Definite, Grant, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clients.worker.adapter import Lost

QUEUED = "not first in the queue when the time was over"


class Noted(FifoLock):  # type: ignore[misc]  # the library is not here when types are checked
    """The library's lock; ``left`` is True if a ticket may still be in the queue."""

    left = False

    async def _call(self, script: Any, owner: str, extra: str) -> Any:
        self.left = True
        answer = await super()._call(script, owner, extra)
        self.left = False
        return answer


class RedisFifoLock(one.OnLoop):
    """One FifoLock per acquire attempt, and a task that listens for its loss."""

    library = "redis-fifo-lock"
    distributions = ("redis-fifo-lock", "redis")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {
        **one.OneRedis.ERRORS,
        LeaseLost: Definite("not-held"),
    }

    def __init__(self) -> None:
        self._tell: Lost = lambda owner, why: None
        self._listening: dict[str, asyncio.Task[None]] = {}

    def watch(self, lost: Lost) -> None:
        self._tell = lost

    async def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        lock = Noted(self.client, key, lease_ms=one.length(ttl_ms))
        with self.sent():
            try:
                lease = await lock.acquire(timeout=timeout_ms / 1000)
            except asyncio.TimeoutError as error:  # noqa: UP041 - two classes before Python 3.11
                if lock.left:
                    raise Unknown("gave up, but its ticket may be queued still") from error
                raise Refused(QUEUED) from error
        self._listening[lease.owner] = asyncio.ensure_future(self._listen(lease))
        return Grant(owner=lease.owner, token=lease.fence, handle=(lock, lease))

    async def _listen(self, lease: Any) -> None:
        await lease.lost.wait()
        self._tell(lease.owner, "the renewal was refused")

    async def release(self, grant: Grant) -> None:
        lock, lease = grant.handle
        with self.sent():
            await lock.release(lease)
        self._listening.pop(lease.owner).cancel()

    async def close(self) -> None:
        for task in self._listening.values():
            task.cancel()
        self._listening.clear()
        await super().close()


ADAPTER = RedisFifoLock
