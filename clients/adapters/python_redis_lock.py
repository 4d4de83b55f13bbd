"""python-redis-lock: ``redis_lock.Lock(client, name, expire=seconds, auto_renewal=)``.

``SET NX EX``, waiters on BLPOP, release by compare-and-delete with a signal to one waiter.  With
``--adapter-arg renewing=yes`` its thread renews the lease at two thirds of its length.

Facts, read in 4.0.1:

- Whole seconds everywhere; a wait of less than one would be rounded down to 0, which is *no limit*.
- A wait may not be longer than the lease without renewal (TimeoutTooLarge), and a BLPOP longer than
  the client's read time-out ends in that time-out: the adapter asks again in steps of ``WAIT_S``.
- False means that the last SET was answered nil: an observation.
- A Lock that is acquired again while the server says that it holds raises AlreadyAcquired, also in
  another thread or after a fork: its id is made with the object.
- Releasing and extending compare on the server; NotAcquired is its word.
- The renewing thread ends with an exception when the lease is gone, and tells nobody.  It also
  ends, unseen, at its first network error.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import redis_lock

from clients.adapters import redis_one as one
from clients.worker.adapter import Definite, Grant, Refused, Shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WAIT_S = 2  # below redis-py's read time-out of 5 s


class PythonRedisLock(one.Blocking, Shares):
    """One Lock object per acquire attempt (or per key)."""

    library = "python-redis-lock"
    distributions = ("python-redis-lock", "redis")
    ERRORS: Mapping[type[BaseException], Definite] = {
        **one.OneRedis.ERRORS,
        redis_lock.NotAcquired: Definite("not-held"),
        redis_lock.TimeoutTooLarge: Definite(),
        redis_lock.AlreadyAcquired: Definite("busy"),  # the server says that this object holds it
    }

    def __init__(self, renewing: str = "no") -> None:
        self._renewing = renewing == "yes"
        if self._renewing:
            self.library = "python-redis-lock-renewing"

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        super().open(nodes, options)
        self.make_objects(self.make_lock)

    def make_lock(self, key: str, ttl_ms: int | None) -> Any:
        seconds = one.whole_seconds(ttl_ms)
        return redis_lock.Lock(self.client, key, expire=seconds, auto_renewal=self._renewing)

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        seconds = one.whole_seconds(ttl_ms)
        lock = self.objects.get(key) or self.make_lock(key, ttl_ms)
        with self.sent():
            if not self._acquired(lock, seconds, timeout_ms):
                raise Refused("busy")
        return Grant(owner=lock.id, handle=lock)

    def _acquired(self, lock: Any, seconds: int, timeout_ms: int) -> bool:
        if timeout_ms <= 0:
            return bool(lock.acquire(blocking=False))
        until = time.monotonic() + timeout_ms / 1000
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return False
            wait = max(1, min(math.ceil(left), seconds, WAIT_S))
            if lock.acquire(timeout=wait):
                return True

    def release(self, grant: Grant) -> None:
        with self.sent():
            grant.handle.release()

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        with self.sent():
            grant.handle.extend(expire=None if ttl_ms is None else one.whole_seconds(ttl_ms))

    def believes(self, grant: Grant) -> bool:
        return bool(grant.handle.get_owner_id() == grant.owner)


ADAPTER = PythonRedisLock
