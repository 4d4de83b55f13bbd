"""sherlock: ``sherlock.RedisLock(name, client=, expire=seconds, timeout=)``.

A SETNX with an EXPIRE in one script, release and renewal by compare on the server.

Facts, read in 0.4.1's ``lock.py``:

- ``timeout`` is not measured: it counts the pauses between tries and not the tries.
- LockTimeoutException and False mean that every try was answered "it is there".
- LockException says either that this object holds nothing (nobody was asked) or that the server has
  another owner; only its text tells which.
- A Lock object that is garbage *releases its lock* (``__del__``).  The adapter keeps every object
  that holds one, so that a session can end without its locks.
- 0.4.0 renews with the release script: see the museum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sherlock
from sherlock.lock import LockException, LockTimeoutException

from clients.adapters import redis_one as one
from clients.worker.adapter import Definite, Grant, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

FOREIGN = "not acquired by this instance"


class Sherlock(one.Blocking):
    """One RedisLock object per acquire attempt."""

    library = "sherlock"
    distributions = ("sherlock", "redis")
    ERRORS: Mapping[type[BaseException], Definite] = {
        **one.OneRedis.ERRORS,
        LockTimeoutException: Definite("busy"),
        LockException: Definite(),
    }

    def __init__(self) -> None:
        self._kept: set[Any] = set()

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        lock = sherlock.RedisLock(
            key,
            client=self.client,
            expire=one.whole_seconds(ttl_ms),
            timeout=timeout_ms / 1000,
            retry_interval=self.options.sleep_ms / 1000,
        )
        with self.sent():
            if not lock.acquire(blocking=timeout_ms > 0):
                raise Refused("busy")
        self._kept.add(lock)
        return Grant(owner=lock._owner, handle=lock)

    def release(self, grant: Grant) -> None:
        with self.sent():
            try:
                grant.handle.release()
            except LockException as error:
                if FOREIGN in str(error):
                    raise Refused("not-held") from error
                raise
        self._kept.discard(grant.handle)

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        if ttl_ms is not None:
            grant.handle.expire = one.whole_seconds(ttl_ms)
        with self.sent():
            if not grant.handle.renew():
                raise Refused("not-held")


ADAPTER = Sherlock
