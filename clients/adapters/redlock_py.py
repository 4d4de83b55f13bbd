"""redlock-py: ``redlock.Redlock([server, ...]).lock(resource, ttl_ms)``, the oldest in Python.

One server after another is asked; a majority within the lease is a lock.  No renewal, no way to
ask, no fencing token; waiting is a number of tries with a fixed pause between them.

Facts, read in 1.0.8's ``redlock/__init__.py``:

- ``lock`` raises MultipleRedlockException when a majority granted *and* some server failed: the
  lock is held, nobody has it in hand, and it stays until its lease ends.  So with one server of
  five down no acquire succeeds.  That exception is not in ERRORS, hence *unknown*.  1.0.6 took
  an error for a refusal, and its lock works then (``museum/redlock-py-1.0.8-node-down.toml``).
- ``unlock`` swallows every error and returns None; the servers' answers are taken from the
  connections instead (redlock_common.py), since a release that failed must not count as one.
- The validity of a grant is counted with the wall clock (``time.time``).
- It sleeps ``retry_delay`` after the last try, too.  0 tries or no delay cannot be asked for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import redlock

from clients.adapters import redlock_common as common
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# retry_count: tries of one ``lock`` call; retry_delay_ms: pause after each (library's defaults).
OPTIONS: Mapping[str, int | None] = {"retry_count": 3, "retry_delay_ms": 200}


class RedlockPy:
    """One Redlock object; while there is time, ``lock`` is called again as a user would."""

    library = "redlock-py"
    distributions = ("redlock-py", "redis")
    lease = Lease("ttl")
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.options = common.read_options(options, OPTIONS)
        self.voters, self.ballot = common.connect(
            nodes, self.options, lambda args: args[0] == "EVAL"
        )
        self.delay_s = (self.options["retry_delay_ms"] or 0) / 1000
        self.redlock = redlock.Redlock(
            [{"host": node["host"], "port": node["port"]} for node in nodes],
            retry_count=self.options["retry_count"],
            retry_delay=self.delay_s,
        )
        self.redlock.servers = self.voters  # versions before 1.0.8 take no connections

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        if ttl_ms is None:
            raise Refused("ttl_ms is missing; a Redlock needs it")
        self.ballot.begin()
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            tries_left = int((deadline - time.monotonic()) / self.delay_s)
            self.redlock.retry_count = max(1, min(self.options["retry_count"] or 1, tries_left))
            lock = self.redlock.lock(key, ttl_ms)
            if lock:
                return Grant(owner=lock.key.decode(), handle=lock)
            if time.monotonic() >= deadline:
                self.ballot.refuse_acquire()

    def release(self, grant: Grant) -> None:
        self.ballot.begin()
        self.redlock.unlock(grant.handle)
        self.ballot.judge_release(grant.handle.key)

    def close(self) -> None:
        for voter in self.voters:
            voter.close()


ADAPTER = RedlockPy
