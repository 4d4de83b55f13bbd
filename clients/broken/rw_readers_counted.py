"""K05, K18: readers are a number, and a reader that died is in it for as long as others come.

The mistake: ``INCR readers`` when one comes in, ``DECR`` when it leaves, with a lease on the number
as a whole that every new reader prolongs.  Who dies in between is never taken off, and no writer
gets in any more while readers keep coming.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.broken.canary import CONTENDED, Canary
from clients.recipes.base import Grant, Script
from clients.recipes.redis_lock import RELEASE
from clients.recipes.redis_rw import RedisRwLock, keys_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from clients.recipes.base import Asking, Call, Command

CANARY = Canary(
    kind="K05",
    checker="orphans",
    says="readers are only counted: one that dies keeps writers out while others come",
    needs="a reader is killed while it holds, and others go on reading",
    # Tries at once: a refusal in a moment in which nobody is inside proves it.
    workload={
        **CONTENDED,
        "kind": "rw",
        "params": {"readers_pct": 80},
        "workers": 5,
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
            "every_ms": [200, 400],
            "count": 4,
            "duration_ms": [50, 100],
        }
    ],
)

READ_LUA = """
if redis.call('EXISTS', KEYS[1]) > 0 then return 0 end
redis.call('INCR', KEYS[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
"""
WRITE_LUA = """
if tonumber(redis.call('GET', KEYS[2]) or '0') <= 0
  and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return 0
"""


def read_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of READ_LUA."""
    if call("EXISTS", keys[0]):
        return 0
    call("INCR", keys[1])
    call("PEXPIRE", keys[1], args[1])
    return 1


def write_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of WRITE_LUA."""
    free = int(call("GET", keys[1]) or "0") <= 0
    return 1 if free and call("SET", keys[0], args[0], "NX", "PX", args[1]) else 0


READ = Script(READ_LUA, read_python)
WRITE = Script(WRITE_LUA, write_python)


class ReadersCounted(RedisRwLock):
    """The right read/write lock but for its memory of readers."""

    scripts: ClassVar[tuple[Script, ...]] = (READ, WRITE, RELEASE)
    read: ClassVar[Script] = READ
    write: ClassVar[Script] = WRITE
    renewable = False

    def release(self, key: str, grant: Grant) -> Asking:
        """A reader counts itself off, whoever it is."""
        if grant.owner.startswith("reader:"):
            yield "DECR", keys_of(key)[1]
        else:
            yield from super().release(key, grant)

    def believes(self, key: str, grant: Grant) -> Generator[Command, Any, bool]:
        """Of a reader it can only say that somebody reads."""
        if grant.owner.startswith("reader:"):
            return int((yield "GET", keys_of(key)[1]) or 0) > 0
        return bool((yield "GET", key) == grant.owner)
