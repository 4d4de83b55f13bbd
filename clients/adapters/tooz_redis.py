"""tooz over Redis: ``get_coordinator("redis://...", member).get_lock(name)``; OpenStack's.

redis-py's Lock inside; the coordinator's heart renews every lock that it holds.

Facts, read in 9.1.0's ``drivers/redis.py``:

- The length of the lease is the coordinator's (``lock_timeout``, whole seconds): one coordinator
  per length here.
- Every call is tried again up to 15 times after a lost connection, so a SET whose reply was lost
  may be followed by one that finds it: "busy" is said only if the library's inner lock was asked
  once.
- ``release`` turns redis-py's LockError into False, whether the server has another owner or the
  object held nothing.
- ``is_still_owner`` asks the server.  Nobody is told of a loss.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from tooz import coordination

from clients.adapters.redis_common import choose_node
from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Options(NamedTuple):
    """[client.options] of a scenario.  socket_timeout_s: tooz's own default is 30."""

    node: str | None = None
    socket_timeout_s: int = 30


class ToozRedis:
    """A coordinator per length of lease, and one lock object per acquire attempt."""

    library = "tooz-redis"
    distributions = ("tooz", "redis")
    lease = Lease("ttl")
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        unknown = [name for name in options if name not in Options._fields]
        if unknown:
            raise Refused(f"options {unknown} are unknown (known: {', '.join(Options._fields)})")
        self.options = Options(**options)
        self.node = choose_node(nodes, self.options.node)
        self.coordinators: dict[int, Any] = {}

    def _coordinator(self, ttl_ms: int | None) -> Any:
        if ttl_ms is None or ttl_ms % 1000 or ttl_ms < 1000:
            raise Refused(f"ttl_ms is {ttl_ms}; tooz takes whole seconds: a multiple of 1000")
        if ttl_ms not in self.coordinators:
            url = (
                f"redis://{self.node['host']}:{self.node['port']}"
                f"?lock_timeout={ttl_ms // 1000}&socket_timeout={self.options.socket_timeout_s}"
            )
            member = f"lockhavoc-{self.node['port']}-{os.getpid()}-{ttl_ms}".encode()
            coordinator = coordination.get_coordinator(url, member)
            coordinator.start(start_heart=True)
            self.coordinators[ttl_ms] = coordinator
        return self.coordinators[ttl_ms]

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        try:
            coordinator = self._coordinator(ttl_ms)
        except coordination.ToozConnectionError as error:
            raise Refused(f"cannot connect: {error}") from error
        lock = coordinator.get_lock(key.encode())
        inner, asked = lock._lock.acquire, []

        def noted(**arguments: Any) -> Any:
            asked.append(1)
            return inner(**arguments)

        lock._lock.acquire = noted
        if not lock.acquire(blocking=timeout_ms / 1000 if timeout_ms > 0 else False):
            if len(asked) > 1:
                raise Unknown("refused, but only after the connection was lost and made again")
            raise Refused("busy")
        return Grant(owner=lock._lock.local.token.decode(), handle=lock)

    def release(self, grant: Grant) -> None:
        if not grant.handle.release():
            raise Refused("not-held")

    def believes(self, grant: Grant) -> bool:
        return bool(grant.handle.is_still_owner())

    def close(self) -> None:
        """Stops the hearts and drops the connections; ``stop`` would release what is held."""
        for coordinator in self.coordinators.values():
            coordinator.heart.stop()
            coordinator.heart.wait(timeout=2)
            coordinator._acquired_locks.clear()
            coordinator.stop()
        self.coordinators.clear()


ADAPTER = ToozRedis
