"""The single-server Redis lock as it should be, plain and with fencing tokens.

    SET key owner NX PX ttl                      acquire: one command, lease included
    if GET key == owner then DEL key             release: compare and delete in one script
    if GET key == owner then PEXPIRE key ttl     renewal: compare and extend in one script

The owner is random and new for each acquisition, so a late command of an old holder can never
touch the lock of a new one.  The fenced lock counts its grants in the same script that grants:
tokens are handed out in the order of the grants (INCR of ``{key}:token``, never deleted).

Prior art: the pattern of the Redis documentation ("Distributed locks with Redis", single
instance).  What it cannot do: keep a paused holder from believing; only the resource can, by
refusing old tokens.
Trap: without persistence a restart of the server loses locks *and* the counter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.recipes.base import Grant, NotHeld, Recipe, Script

if TYPE_CHECKING:
    from collections.abc import Generator

    from clients.recipes.base import Acquiring, Asking, Call, Command

RELEASE_LUA = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
"""

RENEW_LUA = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
"""

GRANT_LUA = """
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return false
"""


def release_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of RELEASE_LUA."""
    if call("GET", keys[0]) == args[0]:
        return call("DEL", keys[0])
    return 0


def renew_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of RENEW_LUA."""
    if call("GET", keys[0]) == args[0]:
        return call("PEXPIRE", keys[0], args[1])
    return 0


def grant_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of GRANT_LUA."""
    if call("SET", keys[0], args[0], "NX", "PX", args[1]):
        return call("INCR", keys[1])
    return None


RELEASE = Script(RELEASE_LUA, release_python)
RENEW = Script(RENEW_LUA, renew_python)
GRANT = Script(GRANT_LUA, grant_python)


def token_key(key: str) -> str:
    """Key of the grant counter; the braces keep it in the lock's slot of a Redis Cluster."""
    return f"{{{key}}}:token"


class RedisLock(Recipe):
    """SET NX PX, compare-and-delete, compare-and-extend; waiters poll."""

    scripts: ClassVar[tuple[Script, ...]] = (RELEASE, RENEW)

    def acquire(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """Polls until the key is free; raises Busy at the deadline."""
        owner = self.fresh_owner()

        def attempt() -> Generator[Command, Any, Grant | None]:
            if (yield "SET", key, owner, "NX", "PX", ttl_ms):
                return Grant(owner)
            return None

        return (yield from self.poll(attempt, key, timeout_ms))

    def release(self, key: str, grant: Grant) -> Asking:
        """Deletes the lock if it is still this owner's."""
        if not (yield "EVAL", RELEASE, (key,), (grant.owner,)):
            raise NotHeld(f"{key} was no longer held")

    def renew(self, key: str, grant: Grant, ttl_ms: int) -> Asking:
        """Extends the lease if the lock is still this owner's."""
        if not (yield "EVAL", RENEW, (key,), (grant.owner, ttl_ms)):
            raise NotHeld(f"{key} was no longer held")


class FencedRedisLock(RedisLock):
    """The same lock; each grant carries a token that grows with every grant of the key."""

    scripts: ClassVar[tuple[Script, ...]] = (RELEASE, RENEW, GRANT)
    fencing = True
    grant: ClassVar[Script] = GRANT

    def acquire(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """Grant and count in one script: nobody can be granted between the two."""
        owner = self.fresh_owner()
        keys = (key, token_key(key))

        def attempt() -> Generator[Command, Any, Grant | None]:
            token = yield "EVAL", self.grant, keys, (owner, ttl_ms)
            return None if token is None else Grant(owner, token)

        return (yield from self.poll(attempt, key, timeout_ms))
