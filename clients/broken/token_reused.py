"""K11: fencing tokens that start again, just when they are needed.

The mistake: the counter of grants expires together with the lock ("no garbage left behind").
While the lock is used all is well; when a holder sleeps past its lease, the counter is gone too,
the next holder gets 1 again, and the fence lets the sleeper in and keeps the right one out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from clients.broken.canary import CONTENDED, PAUSE_PAST_TTL, Canary
from clients.recipes.base import Script
from clients.recipes.redis_lock import RELEASE, RENEW, FencedRedisLock

if TYPE_CHECKING:
    from clients.recipes.base import Call

CANARY = Canary(
    kind="K11",
    checker="fencing",
    says="the token counter expires with the lock: tokens start again at 1",
    needs="a holder is paused past its lease; the next grant gets a smaller token",
    workload=CONTENDED,
    faults=[PAUSE_PAST_TTL],
    resource="fenced",
)

GRANT_LUA = """
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local token = redis.call('INCR', KEYS[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
  return token
end
return false
"""


def grant_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    """Twin of GRANT_LUA."""
    if call("SET", keys[0], args[0], "NX", "PX", args[1]):
        token = call("INCR", keys[1])
        call("PEXPIRE", keys[1], args[1])
        return token
    return None


GRANT = Script(GRANT_LUA, grant_python)


class TokenReused(FencedRedisLock):
    """The right fenced lock but for the life of its counter: only the granting script differs."""

    scripts: ClassVar[tuple[Script, ...]] = (RELEASE, RENEW, GRANT)
    grant: ClassVar[Script] = GRANT
