"""K05: the lock never expires.  Its holder dies and everybody waits for ever.

The mistake: ``SET key owner NX`` without a lease.  Nothing but the holder's own release ends it.
Seen in the wild as a stuck job after a deploy, cured by hand with DEL.
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
    says="no lease: a holder that dies keeps the lock for ever",
    needs="the holder is killed while it holds",
    workload=CONTENDED,
    faults=[
        {
            "kind": "worker-kill",
            "target": "holder",
            "when": "held",
            "start_ms": [300, 600],
            "duration_ms": [50, 100],
        }
    ],
)


class NoTtl(RedisLock):
    """The right lock but for the missing lease."""

    lease = "none"
    renewable = False

    def acquire(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """Ignores ``ttl_ms``."""
        owner = self.fresh_owner()

        def attempt() -> Generator[Command, Any, Grant | None]:
            if (yield "SET", key, owner, "NX"):
                return Grant(owner)
            return None

        return (yield from self.poll(attempt, key, timeout_ms))
