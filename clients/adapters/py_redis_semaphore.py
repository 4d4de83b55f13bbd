"""py-redis-semaphore: ``redis_semaphore.Mutex(client, name, lock_timeout=, acquire_timeout=)``,
and its ``Semaphore`` of k permits, which is the same with another limit and another namespace.

A sorted set of owners with deadlines by the server's clock, waiters on BLPOP, a heartbeat thread
that renews at a third of the length, a fencing token, and a callback when the lock is lost.

Facts, read in 0.2.0's ``semaphore.py``: an unsuccessful result was answered by the script; the
waits end with AcquireTimeoutError after a last answered try.  ``release`` is False if the server
had no such owner.  Errors of the backend are wrapped (BackendError), so nothing of them is
definite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis_semaphore import Mutex, Semaphore, SemaphoreConfig
from redis_semaphore.errors import AcquireTimeoutError, NotAcquiredError

from clients.adapters import redis_one as one
from clients.worker.adapter import Definite, Grant, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clients.worker.adapter import Lost


class PyRedisSemaphore(one.Blocking):
    """One Mutex or Semaphore object per acquire attempt."""

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
        self._kept: set[Any] = set()  # one that is garbage stops to renew

    def watch(self, lost: Lost) -> None:
        self._tell = lost

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        times = self._times(ttl_ms, timeout_ms)
        return self._take(Mutex(self.client, key, on_lock_lost=self._lost, **times), timeout_ms)

    def acquire_permit(self, key: str, k: int, ttl_ms: int | None, timeout_ms: int) -> Grant:
        config = SemaphoreConfig(name=key, limit=k, **self._times(ttl_ms, timeout_ms))
        return self._take(Semaphore(self.client, config, on_lock_lost=self._lost), timeout_ms)

    def _times(self, ttl_ms: int | None, timeout_ms: int) -> dict[str, Any]:
        return {
            "lock_timeout": one.length(ttl_ms) / 1000,
            "acquire_timeout": timeout_ms / 1000 if timeout_ms > 0 else None,  # 0 is refused
            "retry_interval": self.options.sleep_ms / 1000,
        }

    def _lost(self, owner: str) -> None:
        self._tell(owner, "the heartbeat found it gone")

    def _take(self, lock: Any, timeout_ms: int) -> Grant:
        with self.sent():
            result = lock.acquire(blocking=timeout_ms > 0)
        if not result.success:
            raise Refused("busy")
        self._kept.add(lock)
        return Grant(owner=result.identifier, token=result.fencing_token, handle=lock)

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
