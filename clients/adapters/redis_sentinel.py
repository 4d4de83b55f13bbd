"""redis-py's Lock on the primary that Redis Sentinel names: ``Sentinel(...).master_for(...)``.

The usual way to have a highly available lock on Redis, and not a safe one: replication is
asynchronous, so a fail-over may forget a lock that is held.  ``wait_replicas`` asks for more: a
grant counts only when so many replicas have it (WAIT).  With all of them there is none left that
could be promoted without the lock; with fewer it depends on which one Sentinel chooses.

What may be believed of its errors is in redis_common.py and sentinel_common.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from redis.lock import Lock
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError

from clients.adapters import redis_common as common
from clients.adapters import sentinel_common as sentinel
from clients.adapters.redis_py import RedisPy
from clients.worker.adapter import Definite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ReplicatedLock(Lock):
    """redis-py's Lock, granted only if enough replicas have it."""

    options: ClassVar[sentinel.Options] = sentinel.Options()

    def do_acquire(self, token: Any) -> bool:
        if not self.options.wait_replicas:
            return bool(super().do_acquire(token))
        ttl_ms = int(self.timeout * 1000) if self.timeout else None
        granted = sentinel.grant_on_replicas(
            self, token, self.options, lambda pipe: pipe.set(self.name, token, nx=True, px=ttl_ms)
        )
        return bool(granted)


class RedisPySentinel(RedisPy):
    """The synchronous adapter, on whatever server is the primary."""

    library = "redis-py-sentinel"
    ERRORS: Mapping[type[BaseException], Definite] = {
        **common.ERRORS,
        MasterNotFoundError: Definite(),  # nobody to send anything to
    }
    lock_class: ClassVar[type[Lock]] = ReplicatedLock
    manager: ClassVar[type[sentinel.LinkSentinel]] = sentinel.LinkSentinel

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.settings = sentinel.read_options(options)
        self.options = common.Options(
            sleep_ms=self.settings.sleep_ms,
            thread_local=self.settings.thread_local,
            renew=self.settings.renew,
        )
        self.resends = common.Resends()
        retry = Retry(self.resends, self.settings.client_retries)
        self.client, self.sentinels = sentinel.sentinel_client(
            nodes, self.settings, retry, self.manager
        )

    def make_lock(self, key: str, ttl_ms: int | None) -> Any:
        lock = self.client.lock(
            key,
            timeout=common.seconds_for(ttl_ms),
            sleep=self.options.sleep_ms / 1000,
            thread_local=self.options.thread_local,
            lock_class=self.lock_class,
        )
        lock.options, lock.sentinels = self.settings, self.sentinels
        return lock

    def granted_by(self) -> Sequence[str]:
        """The server that gave the last reply, which is that of the grant."""
        return [self.sentinels.node_of_reply]

    def close(self) -> None:
        self.client.close()
        self.sentinels.close()


ADAPTER = RedisPySentinel
