"""K01, K09: a renewal that creates the lock anew when it was lost, over somebody else's.

The mistake: renewing with ``SET key owner PX ttl``.  A renewal may never create ownership: a late
one takes the lock from the present holder, who goes on believing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.broken.canary import CONTENDED, PAUSE_PAST_TTL, Canary
from clients.recipes.redis_lock import RedisLock

if TYPE_CHECKING:
    from clients.recipes.base import Asking, Grant

CANARY = Canary(
    kind="K01",
    checker="lease",
    says="renewal is a plain SET: a late one takes the lock from the present holder",
    needs="a holder is paused past its lease while others take over, then renews",
    workload={**CONTENDED, "hold_ms": [100, 150], "renew_every_ms": 20},
    faults=[PAUSE_PAST_TTL],
)


class RenewalRecreates(RedisLock):
    """The right lock but for its renewal."""

    def renew(self, key: str, grant: Grant, ttl_ms: int) -> Asking:
        """Never raises NotHeld: afterwards the lock is held, whoever had it."""
        yield "SET", key, grant.owner, "PX", ttl_ms
