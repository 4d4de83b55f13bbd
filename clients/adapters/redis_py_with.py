"""redis-py's Lock as a context manager: ``with client.lock(name, timeout=, blocking_timeout=):``.

The same lock as in redis_py.py; what is tested is the door.  Whoever is inside of the block is a
holder, whatever the library thinks: ``acquire`` here is ``__enter__`` and ``release`` is
``__exit__``, as the statement calls them.

Facts, read in 8.1's ``lock.py``: entering raises LockError if the lock was not got in time (before
3.0 it went in without).  Leaving raises LockNotOwnedError if the lock was lost meanwhile, which
ends a block that did its work; ``raise_on_release_error=False`` would keep silent.
"""

from __future__ import annotations

from typing import Any

from redis import exceptions

from clients.adapters import redis_common as common
from clients.adapters.redis_py import RedisPy
from clients.worker.adapter import Grant, Refused


class RedisPyWith(RedisPy):
    """The synchronous adapter with the statement in place of the two calls."""

    library = "redis-py-with"

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        lock: Any = self.objects.get(key) or self.make_lock(key, ttl_ms)
        # As the arguments of the same names would; a shared object was made without them.
        lock.blocking, lock.blocking_timeout = timeout_ms > 0, timeout_ms / 1000
        with common.Resent(self.resends):
            try:
                lock.__enter__()
            except exceptions.LockError as error:
                if isinstance(error, exceptions.LockNotOwnedError):
                    raise
                raise Refused("busy") from error  # the only one that __enter__ raises itself
        return Grant(owner=common.owner_of(lock), handle=lock)

    def release(self, grant: Grant) -> None:
        with common.Resent(self.resends):
            grant.handle.__exit__(None, None, None)


ADAPTER = RedisPyWith
