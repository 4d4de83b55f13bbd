"""etcd3gw: ``etcd3gw.client().lock(name, ttl)`` over etcd's JSON gateway; OpenStack's (by tooz).

The same key under a fresh lease as in the gRPC libraries, but ``acquire`` tries once and never
waits; who wants to wait tries again, here every ``sleep_ms``.  The Lock does not know the revision
of its key, so the fencing token is read afterwards, and only if the key is still ours.

Traps.  Each failed try leaves a lease behind that nobody revokes.  The proxy of the environment
would be used for servers on loopback, too (requests' default), so the session here ignores it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import etcd3gw
import requests

from clients.adapters import etcd_common as common
from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SLEEP_MS = 100


class Etcd3Gw:
    """A client of one etcd member, with one Lock object per acquire attempt."""

    library = "etcd3gw"
    distributions = ("etcd3gw", "requests")
    lease = Lease("ttl")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        given = dict(options)
        sleep_ms = given.pop("sleep_ms", SLEEP_MS)
        if not isinstance(sleep_ms, int) or isinstance(sleep_ms, bool) or sleep_ms < 1:
            raise Refused(f"option sleep_ms is {sleep_ms!r}; it must be an int of at least 1")
        settled = common.read_options(given, also=("sleep_ms",))
        self.sleep_s = sleep_ms / 1000
        self.node = common.choose_node(nodes, settled.node)
        self.session = requests.Session()
        self.session.trust_env = False
        self.client = etcd3gw.client(
            host=self.node["host"],
            port=self.node["port"],
            timeout=common.seconds_of(settled.timeout_ms),
            session=self.session,
        )
        self.attempt = common.Attempt()
        self.lengths: set[int] = set()  # that this server was seen to grant as they are
        self.attempt.watch(self.client)

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        deadline = time.monotonic() + timeout_ms / 1000
        seconds = common.whole_seconds(ttl_ms)
        lock = self.client.lock(key, ttl=seconds)
        with self.attempt:
            while not lock.acquire():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Refused("busy")
                time.sleep(min(self.sleep_s, left))
        self._check_length(lock, seconds)
        found = self.client.get(lock.key, metadata=True)
        if not found or found[0][0].decode() != lock.uuid:
            raise Unknown("the lock was taken and lost again before its token could be read")
        token = int(found[0][1]["create_revision"])
        return Grant(owner=f"{int(lock.lease.id):x}", token=token, handle=lock)

    def _check_length(self, lock: Any, seconds: int) -> None:
        if seconds in self.lengths:
            return
        url = self.client.get_url("/kv/lease/timetolive")
        granted = int(self.client.post(url, json={"ID": lock.lease.id})["grantedTTL"])
        if granted != seconds:
            lock.release()
            common.check_length(seconds, granted)
        self.lengths.add(seconds)

    def granted_by(self) -> list[str]:
        """The member that this client talks to: it told of the grant."""
        return [str(self.node["name"])]

    def release(self, grant: Grant) -> None:
        if not grant.handle.release():
            raise Refused("not-held")

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        common.same_length(grant.handle.ttl, ttl_ms)
        common.still_leased(grant.handle.refresh())

    def believes(self, grant: Grant) -> bool:
        return bool(grant.handle.is_acquired())

    def close(self) -> None:
        self.session.close()


ADAPTER = Etcd3Gw
