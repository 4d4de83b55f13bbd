"""What is known of a library on a backend before anything runs; the claims follow from it.

    traits = traits_of("redis-py-fenced", "redis-single", "process")
    traits.lease, traits.fenced, traits.store        # "ttl", True, "single"

All of it stands in the library's registry entry.  A lease is named in whole seconds, since several
libraries know no shorter unit.
"""

from __future__ import annotations

import msgspec

from clients.libraries import Library
from harness.registries import LIBRARIES

STORES = {
    "redis-single": "single",
    "valkey-single": "single",
    "sim": "single",
    "redlock5": "redlock",
    "redis-sentinel": "sentinel",
    "etcd3": "etcd",
    "zookeeper3": "zookeeper",
    "postgres1": "postgres",
    "postgres-ha": "postgres-ha",
    "postgres-pgbouncer": "pooler",
}
"""Backend -> what kind of store it is; others get the situations that need no knowledge of it."""

SHORT_MS = {"etcd": 2000, "zookeeper": 2000}  # the shortest they take; 1 s elsewhere


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """How several users of one process come to a lock (docs/how-to/shared-locks.md).

    object_users, client_users: who they are that share a lock object, or a client with an object
    for each acquire (threads, tasks, fork); "" if nobody says what comes of it.  one_owner: of
    these ("object", "client") what makes all its users one owner to the server.  pool: it draws
    connections from a pool of a given size.
    """

    object_users: str = ""
    client_users: str = ""
    one_owner: tuple[str, ...] = ()
    pool: bool = False


_REDIS_PY = Sharing(object_users="threads", client_users="fork", pool=True)
_KAZOO = Sharing(object_users="threads", client_users="threads")
_PSYCOPG = Sharing(client_users="threads", one_owner=("client",), pool=True)

SHARING = {
    "redis-py": _REDIS_PY,  # a token for each thread, a pool that notices a fork
    "redis-py-fenced": _REDIS_PY,
    "valkey-py": _REDIS_PY,
    "redis-py-asyncio": Sharing(  # a token for each thread, and tasks are one thread
        object_users="tasks", client_users="tasks", one_owner=("object",)
    ),
    "python-redis-lock": Sharing(  # an owner for each object
        object_users="fork", client_users="fork", one_owner=("object",)
    ),
    "python-redis-lock-renewing": Sharing(pool=True),
    "kazoo": _KAZOO,
    "kazoo-fenced": _KAZOO,
    "kazoo-sequence": _KAZOO,
    "psycopg": _PSYCOPG,  # an owner for each connection
    "psycopg-fenced": _PSYCOPG,
    "pals": Sharing(client_users="threads"),  # a connection for each lock
}
"""Library -> what its users can share; nothing is asked of others."""


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """A library on a backend.

    lease: what ends the lock of a silent holder (ttl, session, connection, none).  fenced: its
    grants carry tokens that grow.  renews: by hand, while it works.  by_itself: by a thread or task
    of its own, unasked.  reads: readers may share it.  permits: it is a semaphore, too.  sharing:
    what users of one process may share.  signal: how it tells of a loss by itself (none, flag,
    callback).  store: kind of the backend.  slow: servers take a second to start again
    (containers), so what has to outlast a restart lasts longer.
    """

    library: str
    backend: str
    runtime: str
    lease: str
    fenced: bool
    renews: bool
    by_itself: bool
    reads: bool = False
    permits: bool = False
    sharing: Sharing = Sharing()
    signal: str
    store: str
    slow: bool
    session_option: str = "session_ms"

    @property
    def timed(self) -> bool:
        """Its lock ends when its holder is silent for a while, whatever the connection does."""
        return self.lease in ("ttl", "session")

    @property
    def short_ms(self) -> int:
        """A short lease that this backend takes."""
        return SHORT_MS.get(self.store, 1000)


def traits_of(library: str, backend: str, runtime: str) -> Traits:
    """From the registry; UserError if there is no such library."""
    known: Library = LIBRARIES.load(library)
    by_itself = known.extra.get("renews") == "by itself"
    return Traits(
        library=library,
        backend=backend,
        runtime=runtime,
        lease=known.lease,
        fenced=bool(known.fencing),
        renews="renew" in known.powers and known.lease == "ttl" and not by_itself,
        by_itself=by_itself,
        reads="read" in known.powers,
        permits="permits" in known.powers,
        sharing=SHARING.get(library, Sharing()),
        signal=known.loss_signal,
        store=STORES.get(backend, "other"),
        slow=runtime == "docker",
        session_option=known.extra.get("session_option", "session_ms"),
    )
