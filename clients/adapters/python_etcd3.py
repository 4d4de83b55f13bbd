"""python-etcd3: ``etcd3.client().lock(name, ttl)``, unmaintained since 2020 and still used most.

One key under a fresh lease for each try, like its fork etcd-sdk-python.  Its Lock does not know the
revision of its key, so the fencing token is read afterwards, and only if the key is still ours.

Traps.  It runs only with protobuf below 4 and tenacity below 7 (its generated code, and how it uses
tenacity).  A waiter watches from the moment at which its watch stands, not from the one at which it
saw the key: an end in between is missed, and it then sleeps until the key's next event or its own
time-out (a lost wake-up).  The fork has mended that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import etcd3

from clients.adapters import etcd_common as common
from clients.adapters.etcd_sync import SyncLock
from clients.worker.adapter import Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping


class PythonEtcd3(SyncLock):
    """``SyncLock`` of etcd3."""

    library = "python-etcd3"
    distributions = ("etcd3", "grpcio", "protobuf", "tenacity")

    def connect(self, node: Mapping[str, Any], options: common.Options) -> Any:
        return etcd3.client(
            host=node["host"],
            port=node["port"],
            timeout=common.seconds_of(options.timeout_ms),
            grpc_options=list(common.channel_options(options).items()),
        )

    def token_of(self, lock: Any) -> int:
        owner, found = self.client.get(lock.key)
        if owner != lock.uuid:
            raise Unknown("the lock was taken and lost again before its token could be read")
        return int(found.create_revision)


ADAPTER = PythonEtcd3
