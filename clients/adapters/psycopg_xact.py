"""psycopg with transaction advisory locks: the lock lives as long as its transaction.

    BEGIN; SET LOCAL lock_timeout; pg_advisory_xact_lock(k); SELECT   then   COMMIT
                                                nextval(...), on another connection

The only kind that a pooler in transaction mode does not tear apart: it keeps a transaction on one
server connection.  Each grant carries a token from a sequence.

Traps.  The work happens inside an open transaction: ``idle_in_transaction_session_timeout`` ends it
in silence, and a long one keeps VACUUM from its work.  There is no unlock: the COMMIT is it, and
answers ok whether or not the lock was still there.  One transaction per connection, so one lock.
A token may not be drawn in that transaction: what a sequence wrote is on disk for sure only after
the commit, which is the end of the lock, so a server that crashes while the lock is held gives the
same token again.  Hence a second connection, in autocommit.  Only a transaction that is still there
after the draw proves that the lock was held when the token was drawn: it is asked once more.  A
pooler needs room for both connections.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import psycopg

from clients.adapters import psycopg_common as common
from clients.worker.adapter import Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class PsycopgXact(common.OneSession):
    """One connection, one transaction per lock; another for tokens."""

    library = "psycopg-xact"
    distributions = ("psycopg",)
    lease = Lease("connection")
    fenced = True
    ERRORS = common.ERRORS
    tokens: Any = None

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.connect(nodes, options)
        try:
            self.tokens = common.connect(nodes, common.read_options(options))
            common.make_fence(self.tokens)
        except (Refused, psycopg.Error):
            self.close()
            raise

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        number = common.number_of(key)
        if self.connection.info.transaction_status in common.IN_TRANSACTION:
            raise Refused("this connection holds a lock already, and has one transaction")
        self._ask("BEGIN")
        try:
            if timeout_ms <= 0:
                got = self._ask("SELECT pg_try_advisory_xact_lock(%s)", number)
            else:
                self._ask("SELECT set_config('lock_timeout', %s, true)", f"{timeout_ms}ms")
                got = self._ask("SELECT pg_advisory_xact_lock(%s) IS NOT NULL", number)
            if not got:
                raise Refused("busy")
            token = common.draw_token(self.tokens)
            self._ask("SELECT 1")  # the lock was not lost before its token was drawn
        except (Refused, psycopg.Error):
            # On a connection that broke it raises too, and then nobody knows.
            self._ask("ROLLBACK")
            raise
        return Grant(f"{os.getpid()}/{self.connection.info.backend_pid}", token, number)

    def release(self, grant: Grant) -> None:
        self._ask("COMMIT")

    def close(self) -> None:
        for connection in (self.connection, self.tokens):
            if connection is not None:
                connection.close()

    def _ask(self, sql: str, *values: Any) -> Any:
        cursor = self.connection.execute(sql, values or None)
        return cursor.fetchone()[0] if cursor.description else None


ADAPTER = PsycopgXact
