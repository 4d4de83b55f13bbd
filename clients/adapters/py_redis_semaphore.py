"""py-redis-semaphore: ``redis_semaphore.Mutex(client, name, lock_timeout=, acquire_timeout=)``.

A sorted set of owners with deadlines by the server's clock, waiters on BLPOP, a heartbeat thread
that renews at a third of the length, a fencing token, and a callback when the lock is lost.

Facts, read in 0.2.0's ``semaphore.py``: an unsuccessful result was answered by the script; the
waits end with AcquireTimeoutError after a last answered try.  ``release`` is False if the server
had no such owner.  Errors of the backend are wrapped (BackendError), so nothing of them is
definite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis_semaphore import Mutex
from redis_semaphore.errors import AcquireTimeoutError, NotAcquiredError

from clients.adapters import redis_one as one
from clients.worker.adapter import Definite, Grant, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clients.worker.adapter import Lost


class PyRedisSemaphore(one.Blocking):
    """One Mutex object per acquire attempt."""

    library = "py-redis-semaphore"
    distributions = ("py-redis-semaphore", "redis")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {
        **one.OneRedis.ERRORS,
        AcquireTimeoutError: Definite("busy"),
        NotAcquiredError: Definite(),
    }

    def __init__(self) -> None:
        self._tell: Lost = lambda owner, why: None
        self._kept: set[Any] = set()  # a Mutex that is garbage stops to renew

    def watch(self, lost: Lost) -> None:
        self._tell = lost

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        mutex = Mutex(
            self.client,
            key,
            lock_timeout=one.length(ttl_ms) / 1000,
            acquire_timeout=timeout_ms / 1000 if timeout_ms > 0 else None,  # 0 is refused
            retry_interval=self.options.sleep_ms / 1000,
            on_lock_lost=lambda owner: self._tell(owner, "the heartbeat found it gone"),
        )
        with self.sent():
            result = mutex.acquire(blocking=timeout_ms > 0)
        if not result.success:
            raise Refused("busy")
        self._kept.add(mutex)
        return Grant(owner=result.identifier, token=result.fencing_token, handle=mutex)

    def release(self, grant: Grant) -> None:
        with self.sent():
            released = grant.handle.release()
        self._kept.discard(grant.handle)
        if not released:
            raise Refused("not-held")

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        """The library's heartbeat, once more and by hand; the length stays."""
        with self.sent():
            if not grant.handle.refresh():
                raise Refused("not-held")


ADAPTER = PyRedisSemaphore
