"""PALs: ``pals.Locker(app, url).lock(name).acquire(blocking, acquire_timeout=ms)``.

A session advisory lock on a connection of SQLAlchemy's pool, one connection per lock.

Facts, read in 0.4.0's ``core.py``:

- False means that a try was answered "taken", or that ``lock_timeout`` ended the wait: both are the
  server's word.  Other errors are raised.
- ``release`` returns what ``pg_advisory_unlock`` answered: False for a lock that is not held.
- An ``acquire_timeout`` of 0 would mean the default of 30 s, so a try is ``blocking=False``.
- A Lock object that is garbage releases; the adapter keeps each one that holds.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pals

from clients.adapters.postgres_one import address_of
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Pals:
    """One Locker, and one Lock object per acquire attempt."""

    library = "pals"
    distributions = ("pals", "sqlalchemy", "psycopg")
    lease = Lease("connection")
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        url = address_of(nodes, options).url("postgresql+psycopg")
        self.locker = pals.Locker("lockhavoc", url)
        self._kept: set[Any] = set()

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        lock = self.locker.lock(key)
        waits = timeout_ms > 0
        if not lock.acquire(blocking=waits, acquire_timeout=timeout_ms if waits else None):
            raise Refused("busy")
        self._kept.add(lock)
        return Grant(owner=f"{os.getpid()}/{id(lock):x}", handle=lock)

    def release(self, grant: Grant) -> None:
        released = grant.handle.release()
        self._kept.discard(grant.handle)
        if not released:
            raise Refused("not-held")

    def close(self) -> None:
        """Drops the connections with what they hold, as the end of a process would."""
        for lock in self._kept:
            lock.conn.invalidate()
            lock.conn = None
        self._kept.clear()
        self.locker.engine.dispose()


ADAPTER = Pals
