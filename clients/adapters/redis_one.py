"""What adapters share whose library locks on one Redis through a client that the user makes.

A subclass has ``acquire`` and ``release``; this has the options, the connection and its close.  The
facts about redis-py's client that decide which errors are definite are in redis_common.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.retry import Retry

from clients.adapters import redis_common as common
from clients.worker.adapter import Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Options(NamedTuple):
    """[client.options] of a scenario; the meaning is that of redis-py's (redis_common.py).

    sleep_ms: pause between two tries, where the library lets its user say it.
    """

    node: str | None = None
    client_retries: int = 0
    socket_timeout_ms: int | None = None
    connect_timeout_ms: int | None = None
    sleep_ms: int = 100


class OneRedis:
    """A client of one server and the count of what it sent twice."""

    lease = Lease("ttl")
    ERRORS = common.ERRORS
    retry: Any = Retry
    client_class: Any = redis.Redis
    more: Mapping[str, Any] = {}  # arguments of the client that the library asks for

    def settle(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        """Reads the options and makes ``client``; nothing is sent yet."""
        self.options = common.read_options(options, Options)
        self.resends = common.Resends()
        node = common.choose_node(nodes, self.options.node)
        retry = self.retry(self.resends, self.options.client_retries)
        arguments = common.client_arguments(node, self.options, retry)
        self.client = self.make_client(self.client_class, {**arguments, **self.more})

    def make_client(self, kind: Any, arguments: Mapping[str, Any]) -> Any:
        return kind(**arguments)

    def sent(self) -> common.Resent:
        """To be held around each call of the library."""
        return common.Resent(self.resends)


class Blocking(common.Pooling, OneRedis):
    """A library without asyncio."""

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.settle(nodes, options)

    def close(self) -> None:
        self.shut()


class OnLoop(OneRedis):
    """A library for asyncio."""

    retry = AsyncRetry
    client_class = redis.asyncio.Redis

    async def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.settle(nodes, options)

    async def close(self) -> None:
        await self.client.aclose()


def length(ttl_ms: int | None) -> int:
    """The lease's length in ms; Refused without one."""
    if ttl_ms is None:
        raise Refused("ttl_ms is missing; this lock needs it")
    return ttl_ms


def whole_seconds(ttl_ms: int | None) -> int:
    """A lease's length where the library takes whole seconds; Refused if it cannot be that."""
    if length(ttl_ms) % 1000 or length(ttl_ms) < 1000:
        raise Refused(f"ttl_ms is {ttl_ms}; this library takes whole seconds: a multiple of 1000")
    return length(ttl_ms) // 1000
