"""K01: the release reads the owner and then deletes, in two commands.

The mistake: ``GET key``, compare in the client, ``DEL key``.  If the lease ends and another client
takes over between the two, the DEL hits the other one's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clients.broken.canary import CONTENDED, Canary
from clients.recipes.base import NotHeld
from clients.recipes.redis_lock import RedisLock

if TYPE_CHECKING:
    from clients.recipes.base import Asking, Grant

CANARY = Canary(
    kind="K01",
    checker="lease",
    says="release compares in the client: the lock can change hands before the DEL",
    needs="answers take over half a lease: the owner is read before its end, deleted after",
    # Tries are single commands: a grant at the end of a long wait has too wide an interval to
    # prove that it came too early.
    workload={
        **CONTENDED,
        "workers": 8,
        "hold_ms": [5, 15],
        "idle_ms": [0, 40],
        "acquire_timeout_ms": 0,
    },
    faults=[
        {
            "kind": "latency",
            "target": "all-nodes",
            "start_ms": [100, 200],
            "duration_ms": 5000,
            "params": {"latency_ms": 110},
        }
    ],
)


class ReadThenDelete(RedisLock):
    """The right lock but for its release."""

    def release(self, key: str, grant: Grant) -> Asking:
        """Right only if nothing happens between the two commands."""
        owner = yield "GET", key
        if owner != grant.owner:
            raise NotHeld(f"{key} was no longer held")
        yield "DEL", key
