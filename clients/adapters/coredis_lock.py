"""coredis: ``coredis.patterns.lock.Lock(client, name, timeout=)``, for asyncio.

``SET NX PX``, release by compare-and-delete.  The owner token is a ContextVar: a lock is acquired
and released in the same task, as the worker does.

Facts, read in 6.9.0: False means that every try was answered nil.  LockReleaseError says either
that this object holds nothing or that the server has another owner; only its text tells.
``extend`` adds to what is left of the lease, so it is no renewal in our sense and not offered.
The client sends a command twice more by itself unless told otherwise; here it does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import coredis
from coredis.exceptions import LockReleaseError
from coredis.patterns.lock import Lock
from coredis.retry import NoRetryPolicy

from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOREIGN = "no longer owned"


class Options(NamedTuple):
    """[client.options] of a scenario.  stream_timeout_ms: of each command, None: no limit."""

    stream_timeout_ms: int | None = None
    sleep_ms: int = 100


class Coredis:
    """One Lock object per acquire attempt."""

    library = "coredis"
    distributions = ("coredis",)
    lease = Lease("ttl")
    ERRORS: Mapping[type[BaseException], Definite] = {LockReleaseError: Definite()}

    async def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        unknown = [name for name in options if name not in Options._fields]
        if unknown:
            raise Refused(f"options {unknown} are unknown (known: {', '.join(Options._fields)})")
        self.options = Options(**options)
        limit_ms = self.options.stream_timeout_ms
        self.client = coredis.Redis(
            host=nodes[0]["host"],
            port=nodes[0]["port"],
            client_name=f"lockhavoc-{nodes[0]['port']}",
            retry_policy=NoRetryPolicy(),
            stream_timeout=None if limit_ms is None else limit_ms / 1000,
        )
        await self.client.__aenter__()

    async def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        if ttl_ms is None:
            raise Refused("ttl_ms is missing; this lock needs it")
        lock: Any = Lock(
            self.client,
            key,
            timeout=ttl_ms / 1000,
            sleep=min(self.options.sleep_ms, ttl_ms) / 1000,
            blocking=timeout_ms > 0,
            blocking_timeout=timeout_ms / 1000,
        )
        if not await lock.acquire():
            raise Refused("busy")
        return Grant(owner=str(lock.local.get()), handle=lock)

    async def release(self, grant: Grant) -> None:
        try:
            await grant.handle.release()
        except LockReleaseError as error:
            if FOREIGN in str(error):
                raise Refused("not-held") from error
            raise

    async def close(self) -> None:
        await self.client.__aexit__(None, None, None)


ADAPTER = Coredis
