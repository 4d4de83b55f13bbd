"""redis-py's Lock: ``redis.Redis(...).lock(name, timeout=ttl)``, the synchronous one.

One server, a lease with a TTL, a uuid as owner, release by compare-and-delete.  The library never
tells of a loss by itself; ``owned()`` asks the server.  It has no fencing tokens.

Trap: by default the Lock keeps its token in thread-local storage; a worker with one user calls
everything on one thread, as most do.  One Lock object that threads share needs that too, for
without it the last to acquire overwrites the token of the one before.  What may be believed of the
library's errors is in redis_common.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis
from redis.retry import Retry

from clients.adapters import redis_common as common
from clients.worker.adapter import Grant, Lease, Refused, Shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RedisPy(common.Pooling, Shares):
    """A client of one Redis server, with one Lock object per acquire attempt (or per key)."""

    library = "redis-py"
    distributions = ("redis",)
    lease = Lease("ttl")
    ERRORS = common.ERRORS

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.options = common.read_options(options)
        self.resends = common.Resends()
        node = common.choose_node(nodes, self.options.node)
        retry = Retry(self.resends, self.options.client_retries)
        arguments = common.client_arguments(node, self.options, retry)
        self.client = self.make_client(redis.Redis, arguments)
        self.make_objects(self.make_lock)

    def make_lock(self, key: str, ttl_ms: int | None) -> Any:
        """A fresh library object; the fenced recipe overrides it."""
        return self.client.lock(
            key,
            timeout=common.seconds_for(ttl_ms),
            sleep=self.options.sleep_ms / 1000,
            thread_local=self.options.thread_local,
        )

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        lock = self.objects.get(key) or self.make_lock(key, ttl_ms)
        with common.Resent(self.resends):
            if not lock.acquire(blocking=timeout_ms > 0, blocking_timeout=timeout_ms / 1000):
                raise Refused("busy")
        token = getattr(lock, "fencing_token", None)
        return Grant(owner=common.owner_of(lock), token=token, handle=lock)

    def release(self, grant: Grant) -> None:
        with common.Resent(self.resends):
            grant.handle.release()

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        lock, seconds = grant.handle, common.seconds_for(ttl_ms)
        with common.Resent(self.resends):
            if self.options.renew == "reacquire" and seconds in (None, lock.timeout):
                lock.reacquire()
            else:
                lock.extend(lock.timeout if seconds is None else seconds, replace_ttl=True)

    def believes(self, grant: Grant) -> bool:
        return bool(grant.handle.owned())

    def close(self) -> None:
        self.shut()


ADAPTER = RedisPy
