"""aetcd: ``client.lock(b"name", ttl)``, the same lock for asyncio, with a watch that reconnects.

Like etcd-sdk-python's it is one key under a fresh lease, and ``lock.revision`` is a fencing token.
The library does not renew by itself; the worker's loop runs on between requests.

Traps.  The lock's name is the key as it stands, without a prefix of the library's.  A refresh
answers one message, not a list.  Its errors carry the server's words, but which call failed only
the adapter knows (``etcd_common.Attempt``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aetcd

from clients.adapters import etcd_common as common
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PREFIX = "/locks/"


class Aetcd:
    """A client of one etcd member, with one Lock object per acquire attempt."""

    library = "aetcd"
    distributions = ("aetcd", "grpcio")
    lease = Lease("ttl")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {}

    async def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        settled = common.read_options(options)
        self.node = common.choose_node(nodes, settled.node)
        self.attempt = common.Attempt()
        self.client = aetcd.Client(
            host=self.node["host"],
            port=self.node["port"],
            timeout=common.seconds_of(settled.timeout_ms),
            options=common.channel_options(settled),
        )
        transaction = self.client.transaction

        async def noted(*args: Any, **kwargs: Any) -> Any:
            self.attempt.sent()
            answer = await transaction(*args, **kwargs)
            self.attempt.answered()
            return answer

        self.client.transaction = noted

    async def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        seconds = common.whole_seconds(ttl_ms)
        lock = self.client.lock((PREFIX + key).encode(), ttl=seconds)
        with self.attempt:
            if not await lock.acquire(timeout=timeout_ms / 1000):
                raise Refused("busy")
        if lock.lease.ttl != seconds:
            await lock.release()
            common.check_length(seconds, lock.lease.ttl)
        return Grant(owner=f"{lock.lease.id:x}", token=lock.revision, handle=lock)

    def granted_by(self) -> list[str]:
        """The member that this client talks to: it told of the grant."""
        return [str(self.node["name"])]

    async def release(self, grant: Grant) -> None:
        if not await grant.handle.release():
            raise Refused("not-held")

    async def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        common.same_length(grant.handle.ttl, ttl_ms)
        answer = await grant.handle.refresh()
        common.still_leased(answer.TTL)

    async def believes(self, grant: Grant) -> bool:
        return bool(await grant.handle.is_acquired())

    async def close(self) -> None:
        await self.client.close()


ADAPTER = Aetcd
