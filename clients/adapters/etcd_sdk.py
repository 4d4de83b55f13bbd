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
from clients.adapters.etcd_sync import SyncLock

if TYPE_CHECKING:
    from collections.abc import Mapping


def connect(node: Mapping[str, Any], options: common.Options) -> MultiEndpointEtcd3Client:
    """A client of one server; nothing is sent yet."""
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


class EtcdSdk(SyncLock):
    """``SyncLock`` of pyetcd."""

    library = "etcd-sdk-python"
    distributions = ("etcd-sdk-python", "grpcio")

    def connect(self, node: Mapping[str, Any], options: common.Options) -> Any:
        return connect(node, options)

    def token_of(self, lock: Any) -> int:
        return int(lock.revision)


ADAPTER = EtcdSdk
