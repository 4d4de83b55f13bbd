"""The same comparison as ``bench`` on a real Redis or Valkey: threads, sockets, a real restart.

    contend("redis://127.0.0.1:6379", "rules", LiveSetup(), restart=None)

Every client is a thread with a connection of its own.  ``rules`` and ``rules, notices`` stand in
the queue of ``redis_queue``; all others just try ``SET NX PX``.  Every command for the lock counts
as a call, waits for word too.

Traps: all keys begin with a name of this run's own and are deleted at its end; nothing else of the
server is touched.  Small differences between policies on a busy machine mean nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from clients.retry.bench import figures
from clients.retry.facts import Settings
from clients.retry.libraries import failure_of
from clients.retry.loop import RetryLoop
from clients.retry.policies import POLICIES
from clients.retry.record import Request
from clients.retry.redis_link import Redis, RedisSaid
from clients.retry.redis_queue import QueuedLock
from clients.retry.waiting import GivenUp, Options
from harness.core.clock import NS_PER_MS
from harness.core.rng import stream

RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end"
GRACE_MS = 20_000  # a thread that has passed its budget by this is stuck


@dataclass(frozen=True)
class LiveSetup:
    """One contended lock on a real server.  Times in ms."""

    waiters: int = 40
    arrive_within_ms: int = 500
    hold_ms: tuple[int, int] = (40, 60)
    ttl_ms: int = 1_000
    budget_ms: int = 30_000
    floor_ms: int = 50


class Client:
    """One client that wants the lock once."""

    def __init__(self, url: str, key: str, number: int, policy: str, setup: LiveSetup, seed: int):
        self.redis = Redis(url, timeout_s=2.0)
        self.key, self.name, self.policy, self.setup = key, f"w{number}", policy, setup
        self.rng: Random = stream(seed, f"bench-live/{number}")
        self.arrives_ms = self.rng.uniform(0, setup.arrive_within_ms)
        self.hold_ms = self.rng.uniform(*setup.hold_ms)
        self.seed, self.calls = seed, 0
        self.arrived_ns = 0
        self.granted_ns: int | None = None
        self.fault: Exception | None = None
        self._lock: QueuedLock | None = None

    def run(self) -> None:
        """Arrives, waits, holds, releases."""
        try:
            time.sleep(self.arrives_ms / 1000)
            self.arrived_ns = time.monotonic_ns()
            if self.policy.startswith("rules"):
                self._by_loop()
            else:
                self._by_policy()
        except Exception as error:  # told after all have ended, not into some thread's void
            self.fault = error
        finally:
            self.redis.close()

    def _hold(self) -> None:
        self.granted_ns = time.monotonic_ns()
        time.sleep(self.hold_ms / 1000)

    def _by_loop(self) -> None:
        loop = self._loop()
        with contextlib.suppress(GivenUp):
            loop.run()
            self._hold()
        if self._lock is not None:
            self.calls = self._lock.calls
            self._lock.withdraw()  # as a release, but a restart may take the answer
        else:
            self._release()

    def _loop(self) -> RetryLoop[Any]:
        setup = self.setup
        if self.policy != "rules, no queue":
            self._lock = QueuedLock(
                self.redis, self.key, setup.ttl_ms, owner=self.name, seed=self.seed
            )
            return self._lock.loop(
                setup.budget_ms,
                floor_ms=setup.floor_ms,
                notices=self.policy == "rules, notices",
            )
        options = Options(
            settings=Settings(floor_ms=setup.floor_ms),
            observe=lambda: {"other_waiters_exist": True},
        )
        request = Request(self.key, self.name, setup.budget_ms, setup.ttl_ms, seed=self.seed)
        return RetryLoop(request, self._attempt, options=options)

    def _attempt(self) -> bool:
        self.calls += 1
        taken = self.redis.call("SET", self.key, self.name, "NX", "PX", self.setup.ttl_ms)
        return taken is not None

    def _release(self) -> None:
        with contextlib.suppress(OSError, RedisSaid):
            self.redis.call("EVAL", RELEASE, 1, self.key, self.name)

    def _by_policy(self) -> None:
        end_ns = self.arrived_ns + self.setup.budget_ms * NS_PER_MS
        failures = previous_ms = 0
        while True:
            try:
                if self._attempt():
                    self._hold()
                    self._release()
                    return
            except Exception as error:
                if failure_of(error) is None and not isinstance(error, RedisSaid):
                    raise
            failures += 1
            delay_ms = POLICIES[self.policy](self.rng, failures, previous_ms)
            if delay_ms is None or time.monotonic_ns() + delay_ms * NS_PER_MS > end_ns:
                return
            previous_ms = delay_ms
            time.sleep(delay_ms / 1000)


def contend(
    url: str,
    policy: str,
    setup: LiveSetup,
    seed: int,
    restart: Callable[[], object] | None = None,
) -> dict[str, float]:
    """Figures of one policy; ``restart`` is called after about a third of the holds."""
    with _own_keys(url) as key:
        clients = [Client(url, key, n, policy, setup, seed) for n in range(setup.waiters)]
        threads = [threading.Thread(target=client.run, daemon=True) for client in clients]
        for thread in threads:
            thread.start()
        if restart is not None:
            time.sleep(setup.waiters * sum(setup.hold_ms) / 2 / 1000 / 3)
            restart()
        deadline = time.monotonic() + (setup.budget_ms + GRACE_MS) / 1000
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        stuck = sum(thread.is_alive() for thread in threads)
        faults = [client.fault for client in clients if client.fault is not None]
        if stuck or faults:
            raise RuntimeError(f"{policy}: {stuck} clients are stuck; {faults[:3]}")
    times = [
        (c.arrived_ns / NS_PER_MS, None if c.granted_ns is None else c.granted_ns / NS_PER_MS)
        for c in clients
    ]
    return figures(times, sum(client.calls for client in clients))


@contextlib.contextmanager
def _own_keys(url: str) -> Iterator[str]:
    key = f"lockhavoc:bench:{uuid.uuid4().hex}"
    try:
        yield key
    finally:
        with Redis(url, timeout_s=5.0) as redis:
            at = "0"
            while True:
                at, found = redis.call("SCAN", at, "MATCH", f"*{key}*", "COUNT", 1_000)
                if found:
                    redis.call("DEL", *found)
                if at == "0":
                    break
