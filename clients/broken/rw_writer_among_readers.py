"""K09: a read/write lock whose writers look out for writers only.

The mistake: the writer's grant is ``SET key owner NX PX ttl`` and nothing else; that readers are
inside is noted in another key, at which it does not look.  Readers wait for writers as they should,
so it looks right until a writer comes in among readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.broken.canary import CONTENDED, Canary
from clients.recipes.base import Script
from clients.recipes.redis_lock import RELEASE, RENEW
from clients.recipes.redis_members import HOLDS, LEAVE, STAY
from clients.recipes.redis_rw import READ, RedisRwLock

if TYPE_CHECKING:
    from clients.recipes.base import Call

CANARY = Canary(
    kind="K09",
    checker="lease",
    says="a writer does not look whether readers are inside",
    needs="a writer that asks while readers hold, which needs no fault",
    workload={**CONTENDED, "kind": "rw"},
    faults=[],
)

WRITE_LUA = """
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return 0
"""


def write_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of WRITE_LUA."""
    return 1 if call("SET", keys[0], args[0], "NX", "PX", args[1]) else 0


WRITE = Script(WRITE_LUA, write_python)


class WriterAmongReaders(RedisRwLock):
    """The right read/write lock but for the writer's grant."""

    scripts: ClassVar[tuple[Script, ...]] = (READ, WRITE, RELEASE, RENEW, LEAVE, STAY, HOLDS)
    write: ClassVar[Script] = WRITE
