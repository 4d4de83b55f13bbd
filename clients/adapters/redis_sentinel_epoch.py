"""The Sentinel lock with a fencing token that grows over fail-overs: epoch first, then a counter.

    token = epoch * 1_000_000_000 + count        # 3000000017: the 17th grant known in epoch 3

Each fail-over has a *config epoch* of its own, voted for by a majority of the sentinels and
greater than all before.  A client learns it with the address of the primary, in one answer, so it
belongs to that primary's time in office.  All that an old primary still grants therefore has a
smaller token than the first grant of the new one, whether a replica saw it or not, and a resource
that has seen one of the new refuses every one of the old.

Traps.  While a fail-over is under way a sentinel shows the new epoch beside the old address; such
an answer is not taken, and clients wait until one of the sentinels is through.  An operator who
says SENTINEL FAILOVER to two sentinels at once may make one epoch twice, since a commanded
fail-over asks for no votes.  More than a thousand million grants of one lock would run over.
Epochs: Redis documentation, "High availability with Redis Sentinel", "Configuration epochs".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from redis.lock import Lock

from clients.adapters import sentinel_common as sentinel
from clients.adapters.redis_sentinel_fenced import CountedLock, RedisPySentinelFenced

if TYPE_CHECKING:
    from collections.abc import Mapping

PER_EPOCH = 1_000_000_000


class SettledSentinel(sentinel.LinkSentinel):
    """Takes no answer of a sentinel that is busy with a fail-over."""

    def check_master_state(self, state: Mapping[str, Any], service_name: str) -> bool:
        if "failover_in_progress" in state["flags"]:
            return False
        return super().check_master_state(state, service_name)


class EpochLock(CountedLock):
    """The same grant; its count is put behind the epoch of the primary that gave it."""

    sentinels: sentinel.LinkSentinel

    def do_acquire(self, token: Any) -> bool:
        if not super().do_acquire(token):
            return False
        self.fencing_token = self.sentinels.epoch_of_reply * PER_EPOCH + (self.fencing_token or 0)
        return True


class RedisPySentinelEpoch(RedisPySentinelFenced):
    """The fenced Sentinel adapter with tokens that a fail-over cannot repeat."""

    library = "redis-py-sentinel-epoch"
    lock_class: ClassVar[type[Lock]] = EpochLock
    manager: ClassVar[type[sentinel.LinkSentinel]] = SettledSentinel


ADAPTER = RedisPySentinelEpoch
