"""fencekit: ``DistributedLock(client).acquire(resource, ttl=, blocking=, wait=)`` with a token.

The grant and the INCR of a counter happen in one script; ``handle.token.value`` is a fencing token.

Facts, read in 0.6.1's ``lock.py``: LockNotAcquired is raised after a try that was answered "taken",
LockNotOwned by scripts that compare on the server.  The counter is lost with the server's data, and
then tokens start again at 1.  Nobody can be asked whether the lock is still held.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import fencekit

from clients.adapters import redis_one as one
from clients.worker.adapter import Definite, Grant

if TYPE_CHECKING:
    from collections.abc import Mapping


class Fencekit(one.Blocking):
    """One DistributedLock for all keys."""

    library = "fencekit"
    distributions = ("fencekit", "redis")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {
        **one.OneRedis.ERRORS,
        fencekit.LockNotAcquired: Definite("busy"),
        fencekit.LockNotOwned: Definite("not-held"),
    }

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        with self.sent():
            handle = fencekit.DistributedLock(self.client).acquire(
                key,
                ttl=timedelta(milliseconds=one.length(ttl_ms)),
                blocking=timeout_ms > 0,
                wait=timedelta(milliseconds=timeout_ms),
                retry_interval=timedelta(milliseconds=self.options.sleep_ms),
            )
        return Grant(owner=handle.owner_id, token=handle.token.value, handle=handle)

    def release(self, grant: Grant) -> None:
        with self.sent():
            fencekit.DistributedLock(self.client).release(grant.handle)

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        ttl = grant.handle.ttl if ttl_ms is None else timedelta(milliseconds=ttl_ms)
        with self.sent():
            fencekit.DistributedLock(self.client).extend(grant.handle, ttl=ttl)


ADAPTER = Fencekit
