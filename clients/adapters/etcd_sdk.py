"""etcd-sdk-python (imported as pyetcd): ``client.lock(name, ttl)``, a key under a lease.

The maintained fork of python-etcd3.  Its Lock knows the revision that created its key, which grows
with every grant and is lost with no restart: a fencing token for nothing.

Traps.  After one failed call the client refuses to use that server for 300 s by the wall clock
("Trying to use a failed node"), and with one server there is no other: here that time is zero.
The client's default is no time-out (``timeout_ms``).  Renewal is the caller's: no thread does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyetcd.client import Endpoint, MultiEndpointEtcd3Client

from clients.adapters import etcd_common as common
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def connect(
    nodes: Sequence[Mapping[str, Any]], options: common.Options
) -> MultiEndpointEtcd3Client:
    """A client of one server; nothing is sent yet."""
    node = common.choose_node(nodes, options.node)
    endpoint = Endpoint(
        node["host"],
        node["port"],
        secure=False,
        time_retry=0,
        opts=list(common.channel_options(options).items()),
    )
    return MultiEndpointEtcd3Client(
        endpoints=[endpoint], timeout=common.seconds_of(options.timeout_ms)
    )


class EtcdSdk:
    """A client of one etcd member, with one Lock object per acquire attempt."""

    library = "etcd-sdk-python"
    distributions = ("etcd-sdk-python", "grpcio")
    lease = Lease("ttl")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.attempt = common.Attempt()
        self.client = connect(nodes, common.read_options(options))
        transaction = self.client.transaction

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.attempt.sent()
            answer = transaction(*args, **kwargs)
            self.attempt.answered()
            return answer

        self.client.transaction = noted

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        seconds = common.whole_seconds(ttl_ms)
        lock = self.client.lock(key, ttl=seconds)
        with self.attempt:
            if not lock.acquire(timeout=timeout_ms / 1000):
                raise Refused("busy")
        if lock.lease.ttl != seconds:
            lock.release()
            common.check_length(seconds, lock.lease.ttl)
        return Grant(owner=f"{lock.lease.id:x}", token=lock.revision, handle=lock)

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


ADAPTER = EtcdSdk
