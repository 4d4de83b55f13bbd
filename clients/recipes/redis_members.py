"""Who has a share of a lock, with a lease of its own: a sorted set of owners with deadlines.

    ZADD members deadline owner          a share, in the script that found room for it
    ZREMRANGEBYSCORE members -inf now-1  shares whose lease is over, before anybody counts

Deadlines are the server's own clock (TIME, in ms), so no client's clock matters, and a share whose
holder died is gone when its lease is over.  The set itself expires with its last share.

Prior art: counting by a sorted set of deadlines is the usual Redis semaphore (Carlson, *Redis in
Action*, 2013, 6.3), there with the clients' clocks; here with the server's.
Trap: a share is over when now > deadline, as with Redis' own expiry, so it lasts between ttl and
ttl + 1 ms and never less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clients.recipes.base import Script

if TYPE_CHECKING:
    from clients.recipes.base import Call

NOW_LUA = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""


def purge_lua(members: str) -> str:
    """Takes out the shares that are over; ``members`` is Lua, as KEYS[1]."""
    return f"redis.call('ZREMRANGEBYSCORE', {members}, '-inf', now - 1)\n"


def add_lua(members: str, owner: str, ttl: str) -> str:
    """Gives a share, or makes it longer."""
    return f"""
redis.call('ZADD', {members}, now + {ttl}, {owner})
redis.call('PEXPIREAT', {members}, redis.call('ZRANGE', {members}, -1, -1, 'WITHSCORES')[2])
"""


def now_ms(call: Call) -> int:
    """Twin of NOW_LUA."""
    seconds, micros = call("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def purge(call: Call, members: str) -> int:
    """Twin of ``purge_lua``; also gives the present time."""
    now = now_ms(call)
    call("ZREMRANGEBYSCORE", members, "-inf", now - 1)
    return now


def add(call: Call, members: str, owner: Any, ttl_ms: Any) -> None:
    """Twin of ``add_lua``."""
    call("ZADD", members, now_ms(call) + int(ttl_ms), owner)
    call("PEXPIREAT", members, call("ZRANGE", members, -1, -1, "WITHSCORES")[1])


def _leave_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    purge(call, keys[0])
    return call("ZREM", keys[0], args[0])


def _stay_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    purge(call, keys[0])
    if call("ZSCORE", keys[0], args[0]) is None:
        return 0
    add(call, keys[0], args[0], args[1])
    return 1


def _holds_python(call: Call, keys: tuple[str, ...], args: tuple[Any, ...]) -> Any:
    purge(call, keys[0])
    return 1 if call("ZSCORE", keys[0], args[0]) is not None else 0


LEAVE = Script(
    NOW_LUA + purge_lua("KEYS[1]") + "return redis.call('ZREM', KEYS[1], ARGV[1])\n", _leave_python
)
STAY = Script(
    NOW_LUA
    + purge_lua("KEYS[1]")
    + "if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end\n"
    + add_lua("KEYS[1]", "ARGV[1]", "ARGV[2]")
    + "return 1\n",
    _stay_python,
)
HOLDS = Script(
    NOW_LUA + purge_lua("KEYS[1]") + "return redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0\n",
    _holds_python,
)
