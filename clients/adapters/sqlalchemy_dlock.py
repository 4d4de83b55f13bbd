"""sqlalchemy-dlock: ``create_sadlock(connection, key).acquire(block, timeout)``.

A session advisory lock on a connection of SQLAlchemy's that the user gives, here one per client.

Facts, read in 0.9.0's ``lock/postgresql.py``: a timed wait is a loop of tries with a pause of
``interval``, so a waiter looks only that often; without a wait it is one try.  Its release raises
SQLAlchemyDLockDatabaseError if ``pg_advisory_unlock`` answered false.  Releasing twice is a
ValueError of the object's own.  The lock holds the connection's transaction open unless that is in
autocommit, as here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy_dlock import create_sadlock
from sqlalchemy_dlock.exceptions import SqlAlchemyDLockDatabaseError

from clients.adapters.postgres_one import address_of
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INTERVAL_S = 0.1  # the library's own is 1 s


class SqlalchemyDlock:
    """One connection in autocommit, and one lock object per acquire attempt."""

    library = "sqlalchemy-dlock"
    distributions = ("sqlalchemy-dlock", "sqlalchemy", "psycopg")
    lease = Lease("connection")
    ERRORS: Mapping[type[BaseException], Definite] = {
        SqlAlchemyDLockDatabaseError: Definite("not-held"),
        ValueError: Definite(),
    }

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        url = address_of(nodes, options).url("postgresql+psycopg")
        self.engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
        self.connection = self.engine.connect()

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        lock = create_sadlock(self.connection, key)
        if timeout_ms > 0:
            granted = lock.acquire(timeout=timeout_ms / 1000, interval=INTERVAL_S)
        else:
            granted = lock.acquire(block=False)
        if not granted:
            raise Refused("busy")
        return Grant(owner=f"{os.getpid()}/{id(lock):x}", handle=lock)

    def release(self, grant: Grant) -> None:
        grant.handle.release()

    def close(self) -> None:
        self.connection.close()
        self.engine.dispose()


ADAPTER = SqlalchemyDlock
