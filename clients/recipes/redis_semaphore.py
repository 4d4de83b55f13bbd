"""A semaphore on one Redis server: k permits, each with a lease of its own.

    acquire   in one script: shares that are over go, and a new one comes if fewer than k are left
    release   the share goes, if it is there
    renewal   the share lasts longer, if it is there

Waiters poll.  ``acquire`` is the semaphore of one permit, which is a mutex.

Trap: all who use a name must say the same k; the server does not know it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.recipes import redis_members as members
from clients.recipes.base import Grant, NotHeld, Recipe, Script

if TYPE_CHECKING:
    from collections.abc import Generator

    from clients.recipes.base import Acquiring, Asking, Call, Command


def enter_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of ENTER."""
    members.purge(call, keys[0])
    if call("ZCARD", keys[0]) >= int(args[2]):
        return 0
    members.add(call, keys[0], args[0], args[1])
    return 1


ENTER = Script(
    members.NOW_LUA
    + members.purge_lua("KEYS[1]")
    + "if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end\n"
    + members.add_lua("KEYS[1]", "ARGV[1]", "ARGV[2]")
    + "return 1\n",
    enter_python,
)


class RedisSemaphore(Recipe):
    """A sorted set of owners with deadlines."""

    scripts: ClassVar[tuple[Script, ...]] = (ENTER, members.LEAVE, members.STAY, members.HOLDS)
    enter: ClassVar[Script] = ENTER
    permits = True

    def acquire(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """The only permit."""
        return (yield from self.acquire_permit(key, 1, ttl_ms, timeout_ms))

    def acquire_permit(self, key: str, k: int, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """Polls until there is room; raises Busy at the deadline."""
        owner = self.fresh_owner()

        def attempt() -> Generator[Command, Any, Grant | None]:
            entered = yield "EVAL", self.enter, (key,), (owner, ttl_ms, k)
            return Grant(owner) if entered else None

        return (yield from self.poll(attempt, key, timeout_ms))

    def release(self, key: str, grant: Grant) -> Asking:
        """Gives the permit back if it is still this owner's."""
        if not (yield "EVAL", members.LEAVE, (key,), (grant.owner,)):
            raise NotHeld(f"the permit of {key} was no longer held")

    def renew(self, key: str, grant: Grant, ttl_ms: int) -> Asking:
        """Keeps the permit if it is still this owner's."""
        if not (yield "EVAL", members.STAY, (key,), (grant.owner, ttl_ms)):
            raise NotHeld(f"the permit of {key} was no longer held")

    def believes(self, key: str, grant: Grant) -> Generator[Command, Any, bool]:
        """Asks the server whether this permit is still out."""
        return bool((yield "EVAL", members.HOLDS, (key,), (grant.owner,)))
