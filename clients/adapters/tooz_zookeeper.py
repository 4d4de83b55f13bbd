"""tooz over ZooKeeper: ``get_coordinator("zookeeper://...", member).get_lock(name)``.

kazoo's Lock inside (see kazoo_lock.py for what is known of it), on the coordinator's own client.

Facts, read in 9.1.0's ``drivers/zookeeper.py``: the session's length is the option ``timeout``,
whole seconds; kazoo's LockTimeout goes through as it is; ``release`` is True also for a node that
went with its session; ``is_still_owner`` reads the node and is False if it cannot.  tooz tells
nobody of a lost session.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from kazoo.exceptions import LockTimeout
from kazoo.protocol.states import KazooState
from tooz import coordination

from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Options(NamedTuple):
    """[client.options] of a scenario.  session_ms: whole seconds, not below two server ticks."""

    session_ms: int = 2_000


class ToozZooKeeper:
    """One coordinator that is given every server."""

    library = "tooz-zookeeper"
    distributions = ("tooz", "kazoo")
    lease = Lease("session")
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        unknown = [name for name in options if name not in Options._fields]
        if unknown:
            raise Refused(f"options {unknown} are unknown (known: {', '.join(Options._fields)})")
        session_ms = Options(**options).session_ms
        if not isinstance(session_ms, int) or session_ms < 1000 or session_ms % 1000:
            raise Refused(f"option session_ms is {session_ms!r}; tooz takes whole seconds")
        own = next((i for i, node in enumerate(nodes) if node.get("own")), 0)
        hosts = ",".join(f"{n['host']}:{n['port']}" for n in [*nodes[own:], *nodes[:own]])
        self.coordinator = coordination.get_coordinator(
            f"zookeeper://{hosts}?timeout={session_ms // 1000}&randomize_hosts=False",
            f"lockhavoc-{nodes[0]['port']}-{os.getpid()}".encode(),
        )
        self._breaks = self._losses = 0
        try:
            self.coordinator.start()
        except coordination.ToozConnectionError as error:
            raise Refused(f"cannot connect: {error}") from error
        self.coordinator._coord.add_listener(self._changed)

    def _changed(self, state: str) -> None:
        self._breaks += state != KazooState.CONNECTED
        self._losses += state == KazooState.LOST

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        """``ttl_ms`` means nothing to a lock of a session."""
        lock = self.coordinator.get_lock(key.encode())
        breaks, losses = self._breaks, self._losses
        try:
            granted = lock.acquire(blocking=timeout_ms / 1000 if timeout_ms > 0 else False)
        except LockTimeout:
            granted = False
        if not granted and self._breaks != breaks:
            raise Unknown("gave up, but its node may be queued still: the connection was lost")
        if not granted:
            raise Refused("busy")
        return Grant(owner=lock._lock.node, handle=(lock, losses))

    def release(self, grant: Grant) -> None:
        lock, losses = grant.handle
        lock.release()
        if self._losses != losses:
            raise Refused("not-held")  # its node went with the session that was lost

    def believes(self, grant: Grant) -> bool:
        return bool(grant.handle[0].is_still_owner())

    def close(self) -> None:
        """Ends the session, and with it what it holds."""
        self.coordinator.stop()


ADAPTER = ToozZooKeeper
