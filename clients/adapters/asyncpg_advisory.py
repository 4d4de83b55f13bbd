"""asyncpg with session advisory locks, by hand: the lock lives as long as its connection.

    pg_try_advisory_lock(k)                      timeout_ms = 0
    set_config('lock_timeout'), pg_advisory_lock(k)
    pg_advisory_unlock(k)

The same as in psycopg_advisory.py for asyncio.  asyncpg's own ``timeout`` would cancel at the
client and leave the server to decide, so the wait is bounded at the server (LockNotAvailable,
55P03: somebody held it, but see the traps there).  A connection that broke raises
ConnectionDoesNotExistError or InterfaceError, and nobody knows what became of the statement.  A
listener tells at once when the connection ends (``add_termination_listener``): that is the loss
signal.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import asyncpg

from clients.adapters.postgres_one import address_of
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clients.worker.adapter import Lost


class AsyncpgAdvisory:
    """One connection, any number of locks in it."""

    library = "asyncpg"
    distributions = ("asyncpg",)
    lease = Lease("connection")
    ERRORS: Mapping[type[BaseException], Definite] = {
        asyncpg.LockNotAvailableError: Definite("busy"),
        asyncpg.DeadlockDetectedError: Definite(),
        asyncpg.ReadOnlySQLTransactionError: Definite(),
        asyncpg.QueryCanceledError: Definite(),
    }

    def __init__(self) -> None:
        self._tell: Lost = lambda owner, why: None
        self._held: dict[str, int] = {}

    def watch(self, lost: Lost) -> None:
        self._tell = lost

    async def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        address = address_of(nodes, options)
        try:
            self.connection = await asyncpg.connect(
                host=address.host,
                port=address.port,
                user=address.options.user,
                database=address.options.database,
                timeout=address.options.connect_timeout_s,
                ssl=False,
                server_settings={"application_name": address.name},
            )
        except OSError as error:
            raise Refused(f"cannot connect: {error}") from error
        self._closing = False
        self.connection.add_termination_listener(self._ended)

    def _ended(self, _: Any) -> None:
        if not self._closing:
            for owner in list(self._held):
                self._tell(owner, "the connection ended")

    async def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        if timeout_ms <= 0:
            got = await self.connection.fetchval(
                "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", key
            )
            if not got:
                raise Refused("busy")
        else:
            await self.connection.execute(
                "SELECT set_config('lock_timeout', $1, false)", f"{timeout_ms}ms"
            )
            await self._wait(key)
        count = len(self._held)
        owner = f"{os.getpid()}/{self.connection.get_server_pid()}/{key}/{count}"
        self._held[owner] = 1
        return Grant(owner=owner, handle=key)

    async def _wait(self, key: str) -> None:
        try:
            await self.connection.execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", key)
        except (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError):
            # It may have been granted in the same moment: see the traps of psycopg_advisory.
            await self.connection.fetchval(
                "SELECT pg_advisory_unlock(hashtextextended($1, 0))", key
            )
            raise

    async def release(self, grant: Grant) -> None:
        unlocked = await self.connection.fetchval(
            "SELECT pg_advisory_unlock(hashtextextended($1, 0))", grant.handle
        )
        self._held.pop(grant.owner, None)
        if not unlocked:
            raise Refused("not-held")

    async def close(self) -> None:
        self._closing = True
        self._held.clear()
        await self.connection.close()


ADAPTER = AsyncpgAdvisory
