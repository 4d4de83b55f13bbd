"""K01: the release deletes whatever is there, also somebody else's lock.

The mistake: a plain ``DEL key``.  A holder that outlived its lease takes the lock away from the
one who has it now, and a third client is let in beside that one.
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
    says="release is a plain DEL: a late one deletes the lock of the present holder",
    needs="a holder is paused past its lease while others take over, then releases",
    workload=CONTENDED,
    faults=[PAUSE_PAST_TTL],
)


class ReleaseWithoutCheck(RedisLock):
    """The right lock but for its release."""

    def release(self, key: str, grant: Grant) -> Asking:
        """Never raises NotHeld: it does not look."""
        yield "DEL", key
