"""K01, K02: every client has the same owner value, so comparing it proves nothing.

The mistake: the owner is a constant (a literal, a host name, pid 1 in a container).  The release
compares and deletes in one step as it should, and still deletes everybody's lock.
"""

from __future__ import annotations

from clients.broken.canary import CONTENDED, PAUSE_PAST_TTL, Canary
from clients.recipes.redis_lock import RedisLock

CANARY = Canary(
    kind="K02",
    checker="lease",
    says="one owner value for all clients: a late release deletes the present holder's lock",
    needs="a holder is paused past its lease while others take over, then releases",
    workload=CONTENDED,
    faults=[PAUSE_PAST_TTL],
)


class ConstantToken(RedisLock):
    """The right lock but for its owner."""

    def fresh_owner(self) -> str:
        """Neither fresh nor an owner."""
        return "locked"
