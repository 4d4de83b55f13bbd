"""A read/write lock on one Redis server: a writer is alone, readers share; each has its own lease.

    key             the writer: SET NX PX, as the plain lock, in the script that saw no reader
    {key}:readers   the readers: a sorted set of owners with deadlines (see redis_members)
    {key}:wanted    a writer waits: readers that come now wait behind it

Every grant looks at both in one script, so nobody can come in between the look and the grant.  The
wish of a writer lasts a few polls and is renewed by each, so that one that died keeps nobody out,
and goes when the writer gives up; without it a stream of readers would keep writers out for ever.

Trap: a reader whose lease ran out may still be reading when a writer gets in; only the resource
could tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.recipes import redis_members as members
from clients.recipes.base import Busy, Grant, NotHeld, Recipe, Script
from clients.recipes.redis_lock import RELEASE, RENEW

if TYPE_CHECKING:
    from collections.abc import Generator

    from clients.recipes.base import Acquiring, Asking, Call, Command

READ_LUA = (
    members.NOW_LUA
    + "if redis.call('EXISTS', KEYS[1], KEYS[3]) > 0 then return 0 end\n"
    + members.purge_lua("KEYS[2]")
    + members.add_lua("KEYS[2]", "ARGV[1]", "ARGV[2]")
    + "return 1\n"
)
WRITE_LUA = (
    members.NOW_LUA
    + members.purge_lua("KEYS[2]")
    + """
if redis.call('ZCARD', KEYS[2]) == 0
  and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('DEL', KEYS[3])
  return 1
end
if tonumber(ARGV[3]) > 0 then
  redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[3])
end
return 0
"""
)


def read_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of READ_LUA."""
    if call("EXISTS", keys[0], keys[2]):
        return 0
    members.purge(call, keys[1])
    members.add(call, keys[1], args[0], args[1])
    return 1


def write_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of WRITE_LUA."""
    members.purge(call, keys[1])
    if call("ZCARD", keys[1]) == 0 and call("SET", keys[0], args[0], "NX", "PX", args[1]):
        call("DEL", keys[2])
        return 1
    if int(args[2]) > 0:
        call("SET", keys[2], args[0], "PX", args[2])
    return 0


READ = Script(READ_LUA, read_python)
WRITE = Script(WRITE_LUA, write_python)
READER = "reader:"
"""How the owner of a reader begins: its share is in the sorted set."""


def keys_of(key: str) -> tuple[str, str, str]:
    """The writer's key, the readers' and the wish's; in one slot of a Redis Cluster."""
    return key, f"{{{key}}}:readers", f"{{{key}}}:wanted"


class RedisRwLock(Recipe):
    """``acquire`` is the writer's, ``acquire_read`` the readers'."""

    scripts: ClassVar[tuple[Script, ...]] = (
        READ, WRITE, RELEASE, RENEW, members.LEAVE, members.STAY, members.HOLDS,
    )  # fmt: skip
    read: ClassVar[Script] = READ
    write: ClassVar[Script] = WRITE
    reads = True

    def acquire(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """The writer's: polls until nobody else is inside; raises Busy at the deadline."""
        owner = self.fresh_owner()
        wish_ms = 2 * max(1, round(self.poll_ms_max)) if timeout_ms > 0 else 0

        def attempt() -> Generator[Command, Any, Grant | None]:
            entered = yield "EVAL", self.write, keys_of(key), (owner, ttl_ms, wish_ms)
            return Grant(owner) if entered else None

        try:
            return (yield from self.poll(attempt, key, timeout_ms))
        except Busy:
            if wish_ms:  # who has given up keeps no reader out
                yield "EVAL", RELEASE, (keys_of(key)[2],), (owner,)
            raise

    def acquire_read(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """A reader's: polls until no writer is inside or waits."""
        owner = READER + self.fresh_owner()

        def attempt() -> Generator[Command, Any, Grant | None]:
            entered = yield "EVAL", self.read, keys_of(key), (owner, ttl_ms)
            return Grant(owner) if entered else None

        return (yield from self.poll(attempt, key, timeout_ms))

    def release(self, key: str, grant: Grant) -> Asking:
        """Gives the lock or the share back if it is still this owner's."""
        script = members.LEAVE if _reads(grant) else RELEASE
        if not (yield "EVAL", script, (_place(key, grant),), (grant.owner,)):
            raise NotHeld(f"{key} was no longer held")

    def renew(self, key: str, grant: Grant, ttl_ms: int) -> Asking:
        """Makes the own lease longer if it is still there."""
        script = members.STAY if _reads(grant) else RENEW
        if not (yield "EVAL", script, (_place(key, grant),), (grant.owner, ttl_ms)):
            raise NotHeld(f"{key} was no longer held")

    def believes(self, key: str, grant: Grant) -> Generator[Command, Any, bool]:
        """Asks the server whether this owner still has the lock or its share."""
        if _reads(grant):
            held = yield "EVAL", members.HOLDS, (_place(key, grant),), (grant.owner,)
            return bool(held)
        return bool((yield "GET", key) == grant.owner)


def _reads(grant: Grant) -> bool:
    return grant.owner.startswith(READER)


def _place(key: str, grant: Grant) -> str:
    return keys_of(key)[1] if _reads(grant) else key
