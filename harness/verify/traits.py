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


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """A library on a backend.

    lease: what ends the lock of a silent holder (ttl, session, connection, none).  fenced: its
    grants carry tokens that grow.  renews: by hand, while it works.  by_itself: by a thread or task
    of its own, unasked.  signal: how it tells of a loss by itself (none, flag, callback).  store:
    kind of the backend.  slow: servers take a second to start again (containers), so what has to
    outlast a restart lasts longer.
    """

    library: str
    backend: str
    runtime: str
    lease: str
    fenced: bool
    renews: bool
    by_itself: bool
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
        signal=known.loss_signal,
        store=STORES.get(backend, "other"),
        slow=runtime == "docker",
        session_option=known.extra.get("session_option", "session_ms"),
    )
