"""What the adapters of python-etcd3 and of its fork share: one Lock class under two names.

A subclass says how to connect and where the fencing token of a grant comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clients.adapters import etcd_common as common
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SyncLock:
    """A client of one etcd member, with one Lock object per acquire attempt."""

    lease = Lease("ttl")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def connect(self, node: Mapping[str, Any], options: common.Options) -> Any:
        """The library's client of one server."""
        raise NotImplementedError

    def token_of(self, lock: Any) -> int:
        """Revision that created the key of a lock just taken; Unknown if it is not ours now."""
        raise NotImplementedError

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        settled = common.read_options(options)
        self.attempt = common.Attempt()
        self.node = common.choose_node(nodes, settled.node)
        self.client = self.connect(self.node, settled)
        self.attempt.watch(self.client)

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        seconds = common.whole_seconds(ttl_ms)
        lock = self.client.lock(key, ttl=seconds)
        with self.attempt:
            if not lock.acquire(timeout=timeout_ms / 1000):
                raise Refused("busy")
        if lock.lease.ttl != seconds:
            lock.release()
            common.check_length(seconds, lock.lease.ttl)
        return Grant(owner=f"{lock.lease.id:x}", token=self.token_of(lock), handle=lock)

    def granted_by(self) -> list[str]:
        """The member that this client talks to: it told of the grant."""
        return [str(self.node["name"])]

    def release(self, grant: Grant) -> None:
        if not grant.handle.release():
            raise Refused("not-held")

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        common.same_length(grant.handle.ttl, ttl_ms)
        (answer,) = grant.handle.refresh()
        common.still_leased(answer.TTL)

    def believes(self, grant: Grant) -> bool:
        return bool(grant.handle.is_acquired())

    def close(self) -> None:
        self.client.close()
