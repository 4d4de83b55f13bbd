"""The Sentinel lock with a fencing token from a counter beside it: a fence that fails over, too.

The token is the INCR of ``redis_py_fenced.py``, made in the script that grants.  On one server
that is sound.  Here the counter is replicated as late as the lock, and a replica that is promoted
without the last grants counts them again: two holders with the same token, and the resource,
which refuses only smaller ones, takes the writes of both.  With ``wait_replicas`` = all of them no
token is handed out that a promoted replica does not know.  ``redis_sentinel_epoch.py`` has tokens
that grow over a fail-over without waiting for anybody.
"""

from __future__ import annotations

from typing import Any, ClassVar

from redis.lock import Lock

from clients.adapters import sentinel_common as sentinel
from clients.adapters.redis_py_fenced import FencedLock, counter_of
from clients.adapters.redis_sentinel import RedisPySentinel


class CountedLock(FencedLock):
    """FencedLock, granted only if enough replicas have it."""

    options: ClassVar[sentinel.Options] = sentinel.Options()

    def do_acquire(self, token: Any) -> bool:
        if not self.options.wait_replicas:
            return super().do_acquire(token)
        ttl_ms = int(self.timeout * 1000) if self.timeout else 0

        def grant(pipe: Any) -> None:
            keys = [self.name, counter_of(self.name)]
            FencedLock.lua_grant(keys=keys, args=[token, ttl_ms], client=pipe)

        granted = sentinel.grant_on_replicas(self, token, self.options, grant)
        self.fencing_token = int(granted or 0) or None
        return self.fencing_token is not None


class RedisPySentinelFenced(RedisPySentinel):
    """The Sentinel adapter with a counter for its fence."""

    library = "redis-py-sentinel-fenced"
    fenced = True
    lock_class: ClassVar[type[Lock]] = CountedLock


ADAPTER = RedisPySentinelFenced
