"""K05: the lease comes in a second command.  A client that dies between the two leaves none.

The mistake: ``SET key owner NX`` and then ``PEXPIRE key ttl``.  The window is one round trip, so
it takes a slow answer or bad luck, and then the lock is stuck for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.broken.canary import CONTENDED, Canary
from clients.recipes.base import Grant
from clients.recipes.redis_lock import RedisLock

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from clients.recipes.base import Acquiring, Command

CANARY = Canary(
    kind="K05",
    checker="liveness",
    says="the lease is set in a second command: a client that dies before it keeps the lock",
    needs="answers are slow, and an acquiring worker is killed between its two commands",
    workload={**CONTENDED, "workers": 2, "ttl_ms": 1000, "hold_ms": [5, 15]},
    faults=[
        {
            "kind": "latency",
            "target": "all-nodes",
            "start_ms": 200,
            "duration_ms": 5000,
            "params": {"latency_ms": 150},
        },
        {
            "kind": "worker-kill",
            "target": "waiter",
            "when": "between-grant-and-reply",
            "start_ms": [400, 700],
            "every_ms": [60, 120],
            "count": 25,
            "duration_ms": [50, 100],
        },
    ],
)


class SetThenExpire(RedisLock):
    """The right lock but for the lease's own command."""

    def acquire(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """Two commands where one would do."""
        owner = self.fresh_owner()

        def attempt() -> Generator[Command, Any, Grant | None]:
            if (yield "SET", key, owner, "NX"):
                yield "PEXPIRE", key, ttl_ms
                return Grant(owner)
            return None

        return (yield from self.poll(attempt, key, timeout_ms))
