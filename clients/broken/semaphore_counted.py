"""K05, K18: permits are a number, and those of the dead never come back while others use it.

The mistake: ``INCR`` to take a permit and ``DECR`` to give it back, with a lease on the number as a
whole that every grant prolongs.  Each client that dies inside takes a permit along; when all are
gone, everybody waits until nobody asks for a whole lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.broken.canary import CONTENDED, Canary
from clients.recipes.base import Grant, Script
from clients.recipes.redis_semaphore import RedisSemaphore

if TYPE_CHECKING:
    from collections.abc import Generator

    from clients.recipes.base import Asking, Call, Command

CANARY = Canary(
    kind="K05",
    checker="orphans",
    says="permits are only counted: one of a client that dies never comes back",
    needs="holders die inside while others go on",
    workload={
        **CONTENDED,
        "kind": "semaphore",
        "params": {"k": 3},
        "workers": 6,
        "ttl_ms": 300,
        "hold_ms": [5, 15],
        "idle_ms": [20, 100],
        "acquire_timeout_ms": 0,
    },
    faults=[
        {
            "kind": "worker-kill",
            "target": "holder",
            "when": "held",
            "start_ms": [200, 600],
            "every_ms": [100, 300],
            "count": 2,  # with no permit left nobody would prolong the number
            "duration_ms": [50, 100],
        }
    ],
)

ENTER_LUA = """
if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[3]) then return 0 end
redis.call('INCR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""


def enter_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of ENTER_LUA."""
    if int(call("GET", keys[0]) or "0") >= int(args[2]):
        return 0
    call("INCR", keys[0])
    call("PEXPIRE", keys[0], args[1])
    return 1


ENTER = Script(ENTER_LUA, enter_python)


class Counted(RedisSemaphore):
    """The right semaphore but for its memory."""

    scripts: ClassVar[tuple[Script, ...]] = (ENTER,)
    enter: ClassVar[Script] = ENTER
    renewable = False

    def release(self, key: str, grant: Grant) -> Asking:
        """Counts down, whoever asks for it."""
        yield "DECR", key

    def believes(self, key: str, grant: Grant) -> Generator[Command, Any, bool]:
        """It can only say that somebody is inside."""
        return int((yield "GET", key) or 0) > 0
