"""aioredlock: ``Aioredlock([server, ...]).lock(resource, lock_timeout=)``, a Redlock for asyncio.

All servers are asked at once; a majority within the lease is a lock.  With ``--adapter-arg
watchdog=yes`` no length is given to ``lock`` and a task renews the lease (its length is then the
manager's ``internal_lock_timeout``) at 60 % of it; a renewal that fails unlocks and sets
``lock.valid`` to False, which is all the holder is told.

Facts, read in 0.7.3:

- A try that fails deletes its keys in the background, and errors there are swallowed.
- LockAcquiringError: a server has another owner.  LockRuntimeError: a server did not answer, which
  wins over the other; nothing is definite then, as keys may have been set.
- Renewal is the grant's own script, which also *takes a free lock*: a lock that was lost and is
  free is taken again without a word.
- A release finds "no key" and says ok: an expired lock that nobody took releases without an error.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from aioredlock import Aioredlock
from aioredlock.errors import LockAcquiringError

from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Options(NamedTuple):
    """[client.options] of a scenario.  retry_count: tries of one call of ``lock``."""

    retry_count: int = 3


class AioredlockLock:
    """A manager per length of lease; while there is time, ``lock`` is called again."""

    library = "aioredlock"
    distributions = ("aioredlock", "aioredis")
    lease = Lease("ttl")
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def __init__(self, watchdog: str = "no") -> None:
        self._watchdog = watchdog == "yes"
        if self._watchdog:
            self.library = "aioredlock-watchdog"

    async def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        unknown = [name for name in options if name not in Options._fields]
        if unknown:
            raise Refused(f"options {unknown} are unknown (known: {', '.join(Options._fields)})")
        self.options = Options(**options)
        self.nodes = [{"host": node["host"], "port": node["port"]} for node in nodes]
        self.managers: dict[int, Any] = {}

    def _manager(self, ttl_ms: int) -> Any:
        if ttl_ms not in self.managers:
            self.managers[ttl_ms] = Aioredlock(
                self.nodes,
                retry_count=self.options.retry_count,
                internal_lock_timeout=ttl_ms / 1000,
            )
        return self.managers[ttl_ms]

    async def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        if ttl_ms is None:
            raise Refused("ttl_ms is missing; a Redlock needs it")
        manager, until = self._manager(ttl_ms), time.monotonic() + timeout_ms / 1000
        manager.retry_count = self.options.retry_count if timeout_ms > 0 else 1
        length = None if self._watchdog else ttl_ms / 1000
        while True:
            try:
                lock = await manager.lock(key, lock_timeout=length)
                return Grant(owner=lock.id, handle=(manager, lock))
            except LockAcquiringError as error:
                if time.monotonic() < until:
                    await asyncio.sleep(0)
                    continue
                # With one server a refusal is that server's word, and nothing was set.
                if len(self.nodes) == 1:
                    raise Refused("busy") from error
                raise Unknown(f"no majority, and keys may be left: {error}") from error

    async def release(self, grant: Grant) -> None:
        manager, lock = grant.handle
        try:
            await manager.unlock(lock)
        except LockAcquiringError as error:
            raise Refused("not-held") from error

    async def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        manager, lock = grant.handle
        try:
            await manager.extend(lock, None if ttl_ms is None else ttl_ms / 1000)
        except LockAcquiringError as error:
            raise Refused("not-held") from error

    async def close(self) -> None:
        """Ends the tasks and connections; ``destroy`` would release what is held."""
        for manager in self.managers.values():
            for task in manager._watchdogs.values():
                task.cancel()
            manager._watchdogs.clear()
            await manager.redis.clear_connections()
        self.managers.clear()


ADAPTER = AioredlockLock
