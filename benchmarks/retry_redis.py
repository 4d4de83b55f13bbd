"""The rules beside the usual policies on a real Redis or Valkey, with a restart in the middle.

    python benchmarks/retry_redis.py --waiters 40

Every client is a coroutine with a connection of its own.  ``rules`` takes a ticket and stands in a
sorted set, so that it knows its place; only the first may take the lock.  The others just try.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from clients.retry.libraries import failure_of
from clients.retry.model import context_from
from clients.retry.monitor import jain, quantile
from clients.retry.policies import POLICIES
from clients.retry.rules import decide
from tests.clients.servers import RedisServer, redis_server

HOLD_MS, TTL_MS, BUDGET_MS = (40, 60), 1_000, 60_000
# Takes the lock if it is free and, in a queue, if nobody is before the caller.  Answers: granted,
# place (from 0), ms of the lease that are left.
ACQUIRE = """
local place = 0
if ARGV[3] == '1' then
  if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
    redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[3]), ARGV[1])
  end
  place = redis.call('ZRANK', KEYS[2], ARGV[1])
end
if place == 0 and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return {1, 0, 0}
end
return {0, place, redis.call('PTTL', KEYS[1])}
"""
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end"
KEYS = ("lock", "waiters", "ticket")


async def wait(name: str, port: int, policy: str, rng: Random) -> tuple[float | None, int]:
    """(seconds until the grant, None without one; calls) of one client."""
    client = redis.asyncio.Redis(port=port, socket_timeout=2, retry=Retry(NoBackoff(), 0))
    began, calls, previous, failures = time.monotonic(), 0, 0, 0
    try:
        while True:
            calls += 1
            seen: dict[str, Any] = {"failure_reason": "lock held"}
            try:
                queued = "1" if policy == "rules" else "0"
                granted, place, left_ms = await client.eval(ACQUIRE, 3, *KEYS, name, TTL_MS, queued)
                if granted:
                    waited = time.monotonic() - began
                    await asyncio.sleep(rng.uniform(*HOLD_MS) / 1000)
                    with contextlib.suppress(RedisError):
                        await client.eval(RELEASE, 1, "lock", name)
                    return waited, calls
                if policy == "rules":
                    seen |= {"queue_position": place + 1, "observed_hold_seconds": 0.05}
                    seen |= {"holder_acquired_ago_seconds": max(0, TTL_MS - left_ms) / 1000}
            except (RedisError, OSError) as error:
                failure = failure_of(error)
                if failure is None:
                    raise
                seen = {"failure_reason": failure.reason}
            failures += 1
            elapsed = time.monotonic() - began
            if policy in POLICIES:
                delay_ms = POLICIES[policy](rng, failures, previous)
            else:
                delay_ms = decide(
                    context_from(known(name, policy, elapsed, failures) | seen)
                ).retry_after_ms
            if delay_ms is None or elapsed * 1000 + delay_ms > BUDGET_MS:
                return None, calls
            previous = delay_ms
            await asyncio.sleep(delay_ms / 1000)
    finally:
        await client.aclose()


def known(name: str, policy: str, elapsed_s: float, failures: int) -> dict[str, Any]:
    return {
        "lock_name": "lock", "requester_id": name, "current_holder_id": None,
        "lock_ttl_seconds": TTL_MS / 1000, "elapsed_wait_seconds": elapsed_s,
        "max_wait_budget_seconds": BUDGET_MS / 1000, "error_code": None,
        "fairness_policy": "fifo" if policy == "rules" else "no-starvation-guarantee",
        "consecutive_failures": failures, "failure_reason_unchanged": False,
        "other_waiters_exist": True,
    }  # fmt: skip


async def contend(server: RedisServer, policy: str, waiters: int, seed: int) -> str:
    """One row: all clients at once, the server restarted after a third of the holds."""
    tasks = [
        asyncio.create_task(wait(f"w{n}", server.port, policy, Random(seed * 1_000 + n)))
        for n in range(waiters)
    ]
    await asyncio.sleep(waiters * sum(HOLD_MS) / 2 / 1000 / 3)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    done = await asyncio.gather(*tasks)
    waits = sorted(waited for waited, _ in done if waited is not None)
    calls = sum(count for _, count in done) / max(1, len(waits))
    return (
        f"| {policy} | {len(waits)} | {quantile(waits, 0.5):.2f} | {quantile(waits, 0.99):.2f}"
        f" | {calls:.1f} | {jain(waits) or 0:.2f} |"
    )


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--waiters", type=int, default=40)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--policies", nargs="*", default=["rules", "rules, no queue", *POLICIES])
    chosen = options.parse_args()
    print("| policy | granted | p50 s | p99 s | calls a grant | Jain |\n|---|---|---|---|---|---|")
    for policy in chosen.policies:
        with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as server:
            print(asyncio.run(contend(server, policy, chosen.waiters, chosen.seed)), flush=True)


if __name__ == "__main__":
    main()
