"""A fork of redis-py whose release looks at nothing: a plain DEL (K01).  Never use it."""

from __future__ import annotations

from clients.adapters.redis_py import RedisPy
from clients.worker.adapter import Grant


class Fork(RedisPy):
    """redis-py's Lock, but for the release."""

    library = "fork-of-redis-py"

    def release(self, grant: Grant) -> None:
        self.client.delete(grant.handle.name)


ADAPTER = Fork
