"""A recipe: redis-py's Lock with a fencing token that grows with every grant.

The library has no token.  Here the grant and the INCR of a counter beside the lock happen in one
script, so no grant is without a token and no token goes to two grants; release, renew and the
owner check stay the library's own.

Traps.  The counter must outlive every lock and every restart: a Redis without persistence, or
one that is restored from an old snapshot, starts to count again at 1 and hands out tokens that
the resource has seen before (the resource then refuses rightful holders, which is safe but stops
the work; if the resource forgot too, tokens are reused and stale writes pass).  An evicted or
flushed counter does the same.  A failover to a replica that is behind may repeat a token.
"""

from __future__ import annotations

from typing import Any

from redis.lock import Lock

from clients.adapters import redis_common as common
from clients.adapters.redis_py import RedisPy

# KEYS[1] lock, KEYS[2] counter; ARGV[1] owner, ARGV[2] ttl in ms ("0": no lease).
# The INCR comes first: if it raises (wrong type, overflow), nothing was granted.
GRANT = """
if redis.call('exists', KEYS[1]) == 1 then
    return 0
end
local token = redis.call('incr', KEYS[2])
if ARGV[2] == '0' then
    redis.call('set', KEYS[1], ARGV[1])
else
    redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return token
"""


def counter_of(key: str) -> str:
    """Key of the counter; the braces keep it on the lock's slot in a cluster."""
    return "{" + key + "}:fence"


class FencedLock(Lock):
    """redis-py's Lock whose grant returns a token (``fencing_token``, None before)."""

    fencing_token: int | None = None
    lua_grant: Any = None

    def register_scripts(self) -> None:
        super().register_scripts()
        if FencedLock.lua_grant is None:
            FencedLock.lua_grant = self.redis.register_script(GRANT)

    def do_acquire(self, token: Any) -> bool:
        ttl_ms = int(self.timeout * 1000) if self.timeout else 0
        granted = FencedLock.lua_grant(
            keys=[self.name, counter_of(self.name)], args=[token, ttl_ms], client=self.redis
        )
        self.fencing_token = int(granted) or None
        return self.fencing_token is not None


class RedisPyFenced(RedisPy):
    """The synchronous adapter with FencedLock in place of Lock."""

    library = "redis-py-fenced"
    fenced = True

    def make_lock(self, key: str, ttl_ms: int | None) -> Any:
        return self.client.lock(
            key,
            timeout=common.seconds_for(ttl_ms),
            sleep=self.options.sleep_ms / 1000,
            thread_local=self.options.thread_local,
            lock_class=FencedLock,
        )


ADAPTER = RedisPyFenced
