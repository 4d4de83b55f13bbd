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
    needs="answers take ten leases: when one holder hears of its grant, its lease is over and the "
    "next one is between its two commands; then all die",
    # Idling keeps the workers out of step: with all in phase nobody would ask at the right moment.
    # Once the lock is stuck nobody holds any more, so the kills after that wait in vain and let
    # the workers live to show it.  The slow links outlast the start of new workers.
    workload={**CONTENDED, "ttl_ms": 50, "hold_ms": [5, 15], "idle_ms": [0, 500]},
    faults=[
        {
            "kind": "latency",
            "target": "all-nodes",
            "start_ms": 200,
            "duration_ms": 5500,
            "params": {"latency_ms": 500},
        },
        {
            "kind": "worker-kill",
            "target": "all-workers",
            "when": "held",
            "start_ms": [1200, 1500],
            "every_ms": [100, 300],
            "count": 4,
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
