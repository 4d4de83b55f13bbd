"""redis-py's asyncio Lock: ``redis.asyncio.Redis(...).lock(name, timeout=ttl)``.

The twin of redis_py.py, with one difference that matters: the asyncio Lock forgets its token only
*after* the server has confirmed the release, so a release whose reply was lost can be repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis.asyncio
from redis.asyncio.retry import Retry

from clients.adapters import redis_common as common
from clients.worker.adapter import Grant, Lease, Refused, Shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class RedisPyAsyncio(Shares):
    """A client of one Redis server, with one Lock object per acquire attempt (or per key)."""

    library = "redis-py-asyncio"
    distributions = ("redis",)
    lease = Lease("ttl")
    ERRORS = common.ERRORS

    async def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.options = common.read_options(options)
        self.resends = common.Resends()
        node = common.choose_node(nodes, self.options.node)
        retry = Retry(self.resends, self.options.client_retries)
        self.client = redis.asyncio.Redis(**common.client_arguments(node, self.options, retry))
        self.make_objects(self.make_lock)

    def make_lock(self, key: str, ttl_ms: int | None) -> Any:
        return self.client.lock(
            key,
            timeout=common.seconds_for(ttl_ms),
            sleep=self.options.sleep_ms / 1000,
            thread_local=self.options.thread_local,
        )

    async def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        lock = self.objects.get(key) or self.make_lock(key, ttl_ms)
        with common.Resent(self.resends):
            if not await lock.acquire(blocking=timeout_ms > 0, blocking_timeout=timeout_ms / 1000):
                raise Refused("busy")
        return Grant(owner=common.owner_of(lock), handle=lock)

    async def release(self, grant: Grant) -> None:
        with common.Resent(self.resends):
            await grant.handle.release()

    async def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        lock, seconds = grant.handle, common.seconds_for(ttl_ms)
        with common.Resent(self.resends):
            if self.options.renew == "reacquire" and seconds in (None, lock.timeout):
                await lock.reacquire()
            else:
                await lock.extend(lock.timeout if seconds is None else seconds, replace_ttl=True)

    async def believes(self, grant: Grant) -> bool:
        return bool(await grant.handle.owned())

    async def close(self) -> None:
        # Older releases (before 5.0.1) call it close().
        close = getattr(self.client, "aclose", None) or self.client.close
        await close()


ADAPTER = RedisPyAsyncio
