"""lockhavoc's own ``RetryLoop`` under test: a queued lock in Redis, waits decided by the rules.

The package ``clients.retry`` is the library here, so it is imported, with what it needs of
``harness.core``, from where this file lies; the environment has pydantic for it.

Definite or not: ``busy`` is said if the last attempt was answered so.  An acquire with attempts
that nobody answered is unknown, unless the withdrawal was answered: the server has then deleted
the lock if it was this owner's, and marked the owner as gone.
Trap: each acquire has an owner of its own, by which its decisions stand in the log.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple  # noqa: UP035 - as the contract

from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(ROOT)  # last, so that nothing of the environment is hidden

from clients.retry.record import JsonLines  # noqa: E402 - the path had to be put right first
from clients.retry.redis_link import Redis  # noqa: E402
from clients.retry.redis_queue import QueuedLock  # noqa: E402
from clients.retry.waiting import GivenUp, Options  # noqa: E402

sys.path.remove(ROOT)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Settings(NamedTuple):
    """[client.options] of a scenario.

    log: file to which decisions and outcomes are appended; None: they are not kept.
    patience_ms: how long a waiter keeps its place without asking.  socket_timeout_ms: of each
    command.  node: name of the server; the first one if None.
    """

    log: str | None = None
    patience_ms: int = 3_000
    socket_timeout_ms: int = 1_000
    node: str | None = None


class RetryLoopClient:
    """A client of one server; every acquire is a loop of its own."""

    library = "retry-loop"
    distributions = ("pydantic",)
    lease = Lease("ttl")
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.settings = read_settings(options)
        wanted = self.settings.node
        found = [node for node in nodes if wanted in (None, node["name"])]
        if not found:
            raise Refused(f"option node is {wanted!r}; the nodes are: {[n['name'] for n in nodes]}")
        place = f"{found[0]['host']}:{found[0]['port']}"
        # The name is the one by which a fault finds this client at the server.
        name = f"lockhavoc-{found[0]['port']}"
        self.redis = Redis(f"redis://{place}", self.settings.socket_timeout_ms / 1000, name)

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        if ttl_ms is None:
            raise Refused("ttl_ms is missing; this lock needs it")
        lock = QueuedLock(self.redis, key, ttl_ms, patience_ms=self.settings.patience_ms)
        log = JsonLines(self.settings.log) if self.settings.log else None
        try:
            owner = lock.loop(timeout_ms, Options(log=log)).run()
        except GivenUp as end:
            if lock.unanswered and not lock.withdrawn:
                raise Unknown(f"attempts and the withdrawal had no answer: {end}") from end
            if lock.observe().get("queue_position"):
                raise Refused("busy") from end
            raise Refused(f"given up: {end}") from end
        return Grant(owner, handle=lock)

    def release(self, grant: Grant) -> None:
        if not grant.handle.release():
            raise Refused("not-held")

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        lock = grant.handle
        if not lock.renew(lock.ttl_ms if ttl_ms is None else ttl_ms):
            raise Refused("not-held")

    def believes(self, grant: Grant) -> bool:
        return bool(grant.handle.held())

    def close(self) -> None:
        self.redis.close()


def read_settings(given: Mapping[str, Any]) -> Settings:
    """Refused names the first option that is unknown or of the wrong kind."""
    for name, value in given.items():
        if name not in Settings._fields:
            known = ", ".join(Settings._fields)
            raise Refused(f"option {name!r} is unknown (known: {known})")
        if name in ("log", "node"):
            right = value is None or isinstance(value, str)
        else:
            right = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if not right:
            raise Refused(f"option {name} is {value!r}; it must be of another kind")
    return Settings(**given)


ADAPTER = RetryLoopClient
