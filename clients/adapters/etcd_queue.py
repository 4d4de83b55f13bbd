"""A recipe: the lock that etcd's own clients make, a queue of keys ordered by their revisions.

    /lockhavoc/queue/k0/694d8f1a      created at revision 17: holds
    /lockhavoc/queue/k0/694d8f2c      created at revision 21: waits for the end of 17
    /lockhavoc/queue/k0/694d8f3b      created at revision 22: waits for the end of 21

Each key lives under a lease of its own, which a thread keeps alive while its owner waits; whose key
is the oldest holds the lock, and that key's revision is its fencing token.

What makes it right is the question asked after the wait: is my own key still there?  A client that
was paused in the queue past its lease finds nobody before it, since its own key went first.  With
``--adapter-arg ownership_check=no`` that is not asked: the fault that Jepsen found in etcd 3.4.3
(etcd issue 11456, "Locks return without checking whether the lease is still held"), kept as a
canary.  With ``keep_alive = false`` (client.options) leases run out in a long queue by themselves.

Traps.  Refusals are never ``busy``: the key at the head may belong to a client that gave up, so
nobody may hold the lock.  A place in the queue whose removal was not confirmed goes on blocking
until its lease ends: such an acquire is unknown.  The thread that keeps leases alive has a
connection of its own, because pyetcd drops all watches of a client when one of its calls fails.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import grpc
from pyetcd import exceptions

from clients.adapters import etcd_common as common
from clients.adapters.etcd_sdk import connect
from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX = "/lockhavoc/queue/"


class Place:
    """One place in the queue: ``key`` at ``revision`` under ``lease``."""

    def __init__(self, queue: str, lease: Any) -> None:
        self.queue, self.lease = queue, lease
        self.key = f"{queue}{lease.id:x}"
        self.revision = 0


class EtcdQueue:
    """A client of one etcd member; each acquire attempt takes a place of its own."""

    library = "recipe-etcd"
    distributions = ("etcd-sdk-python", "grpcio")
    lease = Lease("ttl")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def __init__(self, ownership_check: str = "yes") -> None:
        if ownership_check not in ("yes", "no"):
            raise ValueError(f"ownership_check is {ownership_check!r}; it must be yes or no")
        self.checks = ownership_check == "yes"

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        given = dict(options)
        self.keep_alive = given.pop("keep_alive", True)
        if not isinstance(self.keep_alive, bool):
            raise Refused(f"option keep_alive is {self.keep_alive!r}; it must be bool")
        settled = common.read_options(given, also=("keep_alive",))
        self.node = common.choose_node(nodes, settled.node)
        self.client, self.keeper = connect(self.node, settled), connect(self.node, settled)
        self.attempt = common.Attempt()

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        deadline = time.monotonic() + timeout_ms / 1000
        seconds = common.whole_seconds(ttl_ms)
        with self.attempt:
            lease = self.client.lease(seconds)
            common.check_length(seconds, lease.ttl)
            place = Place(f"{PREFIX}{key}/", lease)
            self.attempt.sent()
            self._enter(place)
            self.attempt.answered()
        with self._kept_alive(place):
            try:
                while not self._is_mine(place, deadline):
                    pass
            except Refused:
                raise
            except Exception as error:
                self._leave(place, common.describe(error))
        return Grant(owner=f"{lease.id:x}", token=place.revision, handle=place)

    def _enter(self, place: Place) -> None:
        ops = self.client.transactions
        taken, answers = self.client.transaction(
            compare=[ops.create(place.key) == 0],
            success=[ops.put(place.key, "", lease=place.lease)],
            failure=[],
        )
        if not taken:
            raise Refused(f"lease {place.lease.id:x} was given twice")
        place.revision = answers[0].response_put.header.revision

    def _is_mine(self, place: Place, deadline: float) -> bool:
        """True if the lock is ours now; False after the key before ours has changed.

        Refused if our place was lost, or given up because the time is over.
        """
        queue = self.client.get_prefix_response(place.queue)
        revisions = {kv.key.decode(): kv.create_revision for kv in queue.kvs}
        if self.checks and revisions.get(place.key) != place.revision:
            raise Refused("the lease ended in the queue, and the place with it")
        before = [key for key, revision in revisions.items() if revision < place.revision]
        if not before:
            if self.checks:  # and a whole lease from now on
                (answer,) = place.lease.refresh()
                if answer.TTL <= 0:
                    raise Refused("the lease ended in the queue, and the place with it")
            return True
        left = deadline - time.monotonic()
        if left <= 0:
            self._leave(place, "not first in the queue when the time was over")
        nearest = max(before, key=revisions.__getitem__)
        with contextlib.suppress(exceptions.WatchTimedOut):
            self.client.watch_once(nearest, timeout=left, start_revision=queue.header.revision + 1)
        return False

    def _leave(self, place: Place, why: str) -> None:
        """Gives the place up: Refused if etcd confirmed it, else Unknown."""
        try:
            self.client.revoke_lease(place.lease.id)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise Unknown(f"{why}; place not given up: {common.describe(error)}") from None
        except exceptions.Etcd3Exception as error:
            raise Unknown(f"{why}; place not given up: {common.describe(error)}") from None
        raise Refused(why)

    @contextlib.contextmanager
    def _kept_alive(self, place: Place) -> Iterator[None]:
        """Renews the lease in a thread while its owner waits."""
        if not self.keep_alive:
            yield
            return
        over = threading.Event()

        def keep() -> None:
            while not over.wait(place.lease.ttl / 3):
                # A failure is not the end: the next one may get through before the lease ends.
                with contextlib.suppress(grpc.RpcError, exceptions.Etcd3Exception):
                    list(self.keeper.refresh_lease(place.lease.id))

        thread = threading.Thread(target=keep, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()  # not joined: it may hang in a call, and can do no harm any more

    def granted_by(self) -> list[str]:
        """The member that this client talks to: it told of the grant."""
        return [str(self.node["name"])]

    def release(self, grant: Grant) -> None:
        place, ops = grant.handle, self.client.transactions
        held, _ = self.client.transaction(
            compare=[ops.create(place.key) == place.revision],
            success=[ops.delete(place.key)],
            failure=[],
        )
        if not held:
            raise Refused("not-held")

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        lease = grant.handle.lease
        common.same_length(lease.ttl, ttl_ms)
        (answer,) = lease.refresh()
        common.still_leased(answer.TTL)

    def believes(self, grant: Grant) -> bool:
        _, found = self.client.get(grant.handle.key)
        return found is not None and found.create_revision == grant.handle.revision

    def close(self) -> None:
        self.client.close()
        self.keeper.close()


ADAPTER = EtcdQueue
