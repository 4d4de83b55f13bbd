"""A lock with a queue in Redis or Valkey that tells a ``RetryLoop`` all it can know.

    with Redis("redis://127.0.0.1:6379") as redis:
        lock = QueuedLock(redis, "orders", ttl_ms=10_000)
        with lock.loop(budget_ms=30_000):
            ...

Waiters stand in a sorted set by the number that they drew; only the first may take the lock, and a
release puts word for it into a list of its own.  The server keeps when the lock was granted and how
long it is usually held, so the loop knows its place, the age of the lease and the usual hold.

Traps.  A waiter that has not asked for ``patience_ms`` (killed, paused) loses its place, or it
would block all others; so no delay may be longer, which ``loop`` sees to.  All attempts of one lock
object have one owner, so an attempt whose answer was lost may be repeated; one that arrives after
the withdrawal finds a marker and takes nothing.  Without persistence a restart of the server loses
the lock and the queue.  One server: no lock of this kind outlives the loss of its server's data.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import Any

from clients.retry.facts import Settings
from clients.retry.libraries import RefusedAttempt
from clients.retry.loop import RetryLoop
from clients.retry.record import Request
from clients.retry.redis_link import Redis, RedisSaid
from clients.retry.waiting import Options

PATIENCE_MS = 5_000
MARKER_MS = 60_000  # longer than a command can be on its way
WORD_MS = 5_000
# The budget ends the waiting; being refused again and again is what a queue is.
SETTINGS = Settings(busy_failures_max=1_000_000)

ACQUIRE = """
local lock, queue, seen, facts, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local me, ttl, patience = ARGV[1], ARGV[2], tonumber(ARGV[3])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if redis.call('EXISTS', gone) == 1 then return {-1, 0, 0, '', 0, ''} end
local holder = redis.call('GET', lock)
if holder ~= me then
  for _, late in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', '(' .. now, 'LIMIT', 0, 100)) do
    redis.call('ZREM', queue, late)
    redis.call('ZREM', seen, late)
  end
  if not redis.call('ZSCORE', queue, me) then
    redis.call('ZADD', queue, redis.call('HINCRBY', facts, 'ticket', 1), me)
  end
  redis.call('ZADD', seen, now + patience, me)
  redis.call('PEXPIRE', queue, 2 * patience)
  redis.call('PEXPIRE', seen, 2 * patience)
  redis.call('PEXPIRE', facts, 86400000)
  local place = redis.call('ZRANK', queue, me)
  if holder or place > 0 then
    return {0, place + 1, redis.call('PTTL', lock), holder or '', redis.call('ZCARD', queue) - 1,
            redis.call('HGET', facts, 'hold') or ''}
  end
end
redis.call('SET', lock, me, 'PX', ttl)
redis.call('HSET', facts, 'since', now)
redis.call('ZREM', queue, me)
redis.call('ZREM', seen, me)
return {1, 0, 0, me, 0, ''}
"""
LEAVE = """
local lock, queue, seen, facts, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local me, marker, word, prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
redis.call('SET', gone, '1', 'PX', marker)
redis.call('ZREM', queue, me)
redis.call('ZREM', seen, me)
local holder = redis.call('GET', lock)
local mine = holder == me
if mine then
  redis.call('DEL', lock)
  local clock = redis.call('TIME')
  local since = redis.call('HGET', facts, 'since')
  if since then
    local held = clock[1] * 1000 + math.floor(clock[2] / 1000) - since
    local before = redis.call('HGET', facts, 'hold')
    redis.call('HSET', facts, 'hold', before and math.floor(0.8 * before + 0.2 * held) or held)
  end
end
if mine or not holder then
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first then
    redis.call('RPUSH', prefix .. first, '1')
    redis.call('PEXPIRE', prefix .. first, word)
  end
end
return mine and 1 or 0
"""
RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""


class QueuedLock:
    """One acquisition of one lock; ``owner`` is fresh if none is given.  Times in ms."""

    def __init__(
        self,
        redis: Redis,
        name: str,
        ttl_ms: int,
        *,
        owner: str | None = None,
        patience_ms: int = PATIENCE_MS,
        seed: int = 0,
    ) -> None:
        self.owner = owner or uuid.uuid4().hex
        self.name, self.ttl_ms, self.patience_ms, self.seed = name, ttl_ms, patience_ms, seed
        self.calls = 0  # attempts and waits for word
        self.unanswered = 0  # attempts whose answer never came
        self.withdrawn = False  # the server has said so
        self._redis = redis
        parts = ("queue", "seen", "facts", f"gone:{self.owner}")
        self._keys = (name, *(f"{{{name}}}:{part}" for part in parts))
        self._words = f"{{{name}}}:word:"
        self._seen: dict[str, Any] = {}

    def loop(
        self,
        budget_ms: int,
        options: Options | None = None,
        *,
        floor_ms: int = SETTINGS.floor_ms,
        notices: bool = True,
    ) -> RetryLoop[str]:
        """The loop that acquires it; the options' ``observe`` and ``settings`` are this lock's."""
        observe = self.observe if notices else partial(self.observe, notices=False)
        settings = replace(SETTINGS, floor_ms=floor_ms)
        options = replace(options or Options(), observe=observe, settings=settings)
        request = Request(
            self.name,
            self.owner,
            budget_ms,
            ttl_ms=self.ttl_ms,
            fairness="fifo",
            constraints=(f"Must wait at most {self.patience_ms // 2} ms",),
            seed=self.seed,
        )
        return RetryLoop(
            request,
            self.attempt,
            release=lambda _: self.release(),
            withdraw=self.withdraw,
            notice=self.notice if notices else None,
            options=options,
        )

    def attempt(self) -> str | None:
        """The owner if it was granted (or is held already); RefusedAttempt without an answer."""
        self._seen = {}
        self.calls += 1
        try:
            granted, place, left_ms, holder, others, hold = self._script(
                ACQUIRE, self.ttl_ms, self.patience_ms
            )
        except OSError as error:
            self.unanswered += 1
            # No unknown outcome to be afraid of: the next attempt finds what this one did.
            raise RefusedAttempt(f"could not connect or no answer came: {error}") from error
        except RedisSaid as error:
            raise RefusedAttempt(f"the server refused: {error}") from error
        if granted:
            return self.owner if granted == 1 else None
        self._seen = {"queue_position": place, "other_waiters_exist": others}
        if holder:
            age_ms = max(0, self.ttl_ms - max(0, left_ms))
            self._seen |= {
                "current_holder_id": holder,
                "holder_acquired_ago_seconds": age_ms / 1000,
            }
        if hold:
            self._seen["observed_hold_seconds"] = int(hold) / 1000
        return None

    def observe(self, *, notices: bool = True) -> dict[str, Any]:
        """What the last attempt has shown, as fields of a context."""
        return {"release_notice": notices, **self._seen}

    def notice(self, most_s: float) -> bool:
        """Waits for word that it is this client's turn."""
        # The server counts in steps of some ms, and 0 would mean for ever.
        key, most_s = self._words + self.owner, max(0.01, most_s)
        self.calls += 1
        try:
            return self._redis.call("BLPOP", key, f"{most_s:.3f}", more_s=most_s) is not None
        except RedisSaid as error:  # loading its data after a restart, for instance
            raise RefusedAttempt(f"the server refused: {error}") from error

    def release(self) -> bool:
        """Whether it was still this owner's; the next in the queue gets word."""
        return bool(self._script(LEAVE, MARKER_MS, WORD_MS, self._words))

    def withdraw(self) -> bool:
        """Leaves the queue, and the lock if an attempt had got it; False if nobody answered."""
        try:
            self.release()
        except (OSError, RedisSaid):
            return False  # ``patience_ms`` and the lease end it
        self.withdrawn = True
        return True

    def renew(self, ttl_ms: int) -> bool:
        """Whether the lease is this owner's for ``ttl_ms`` more."""
        return bool(self._script(RENEW, ttl_ms))

    def held(self) -> bool:
        """Whether the server says that this owner holds it."""
        return bool(self._redis.call("GET", self.name) == self.owner)

    def _script(self, script: str, *arguments: int | str) -> Any:
        keys = self._keys
        return self._redis.call("EVAL", script, len(keys), *keys, self.owner, *arguments)
