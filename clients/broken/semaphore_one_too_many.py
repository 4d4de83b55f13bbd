"""K09: a semaphore that lets one more in than it has permits.

The mistake: ``count > k`` where ``count >= k`` is meant.  With few clients nobody notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.broken.canary import CONTENDED, Canary
from clients.recipes import redis_members as members
from clients.recipes.base import Script
from clients.recipes.redis_semaphore import RedisSemaphore

if TYPE_CHECKING:
    from clients.recipes.base import Call

CANARY = Canary(
    kind="K09",
    checker="lease",
    says="one more permit than there are is given out",
    needs="more clients than permits, which needs no fault",
    workload={**CONTENDED, "kind": "semaphore", "params": {"k": 2}, "workers": 5},
    faults=[],
)


def enter_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of ENTER."""
    members.purge(call, keys[0])
    if call("ZCARD", keys[0]) > int(args[2]):
        return 0
    members.add(call, keys[0], args[0], args[1])
    return 1


ENTER = Script(
    members.NOW_LUA
    + members.purge_lua("KEYS[1]")
    + "if redis.call('ZCARD', KEYS[1]) > tonumber(ARGV[3]) then return 0 end\n"
    + members.add_lua("KEYS[1]", "ARGV[1]", "ARGV[2]")
    + "return 1\n",
    enter_python,
)


class OneTooMany(RedisSemaphore):
    """The right semaphore but for one sign."""

    scripts: ClassVar[tuple[Script, ...]] = (ENTER, members.LEAVE, members.STAY, members.HOLDS)
    enter: ClassVar[Script] = ENTER
