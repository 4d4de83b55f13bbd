"""postgres-mutex: a row with a heartbeat, ``Mutex(dsn, name, heartbeat_interval=,
stale_threshold=)``.

A row means that the lock is held; its holder's thread touches it, and a contender deletes a row
that was not touched for ``stale_threshold`` seconds *by the contender's own setting*.

Facts, read in 0.1.0's ``_sync.py``:

- Each try is one transaction; False means that it saw a row, which is an observation.
- LockNotHeldError of release and heartbeat is the server's word (no row with our name was there).
- ``held`` is a local flag that the heartbeat thread sets; nobody is called.
- The lease renews itself for as long as the process lives, at a third of its length here.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import psycopg
from postgres_mutex import Mutex
from postgres_mutex.exceptions import LockAcquisitionTimeout, LockNotHeldError

from clients.adapters.postgres_one import address_of
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class PostgresMutex:
    """One Mutex object, with its own connection, per acquire attempt."""

    library = "postgres-mutex"
    distributions = ("postgres-mutex", "psycopg")
    lease = Lease("ttl")
    ERRORS: Mapping[type[BaseException], Definite] = {
        LockAcquisitionTimeout: Definite("busy"),
        LockNotHeldError: Definite("not-held"),
        psycopg.errors.ConnectionTimeout: Definite(),
    }

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.url = address_of(nodes, options).url()
        self._cores: set[Any] = set()
        maker = Mutex(self.url, "maker")
        try:
            maker.create_schema()
        except psycopg.errors.UniqueViolation:
            pass  # somebody else made the table at the same time
        finally:
            maker._sync().close()

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        if ttl_ms is None:
            raise Refused("ttl_ms is missing; this lock needs it")
        seconds = ttl_ms / 1000
        mutex = Mutex(
            self.url,
            key,
            instance_id=uuid.uuid4().hex,
            heartbeat_interval=seconds / 3,
            alert_threshold=seconds * 2 / 3,
            stale_threshold=seconds,
            poll_interval=0.05,
        )
        core = mutex._sync()
        granted = False
        try:
            granted = core.acquire(timeout_ms > 0, timeout_ms / 1000)
            if not granted:
                raise Refused("busy")
        finally:
            if granted:
                self._cores.add(core)
            else:
                core.close()
        return Grant(owner=mutex.instance_id, handle=(mutex, core))

    def release(self, grant: Grant) -> None:
        mutex, core = grant.handle
        mutex.release()
        core.close()
        self._cores.discard(core)

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        """The library's heartbeat, once more and by hand; the length stays."""
        grant.handle[0].heartbeat()

    def believes(self, grant: Grant) -> bool:
        """The library's own flag; nobody is asked."""
        return bool(grant.handle[0].held)

    def close(self) -> None:
        """Stops the heartbeats and drops the connections; the rows stay."""
        for core in self._cores:
            core.close()
        self._cores.clear()


ADAPTER = PostgresMutex
