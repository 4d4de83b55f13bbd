"""psycopg with session advisory locks, by hand: the lock lives as long as its connection.

    pg_try_advisory_lock(k)                      timeout_ms = 0
    SET lock_timeout; pg_advisory_lock(k)        with a time to wait
    pg_advisory_unlock(k)

and for readers the same functions ending in ``_shared``.

With ``--adapter-arg fenced=yes`` each grant draws a token from a sequence, in the same session,
after the lock was got: a later holder draws later, so tokens grow.

Traps.  The holder is *told nothing*: if the server ends the session (a restart, a fail-over,
``pg_terminate_backend``, ``idle_session_timeout``), the lock is gone, and the client learns of it
with its next statement, which may be the unlock.  No ttl: ``ttl_ms`` is not used, and a holder that
hangs holds for ever.  Advisory locks are re-entrant in a session: two clients that share one (by a
pooler) both get the lock.  A sequence's value may be lost with a fail-over to a standby that is
behind; then tokens are given again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from psycopg import errors

from clients.adapters import psycopg_common as common
from clients.worker.adapter import Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class PsycopgAdvisory(common.OneSession):
    """One connection, one session, any number of locks in it."""

    library = "psycopg"
    distributions = ("psycopg",)
    lease = Lease("connection")
    ERRORS = common.ERRORS

    def __init__(self, fenced: str = "no") -> None:
        self.fenced = fenced == "yes"
        self._timeout_ms: int | None = None

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.connect(nodes, options)
        self._timeout_ms = None
        if self.fenced:
            common.make_fence(self.connection)

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        return self._acquire(key, timeout_ms, "")

    def acquire_read(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        return self._acquire(key, timeout_ms, "_shared")

    def _acquire(self, key: str, timeout_ms: int, kind: str) -> Grant:
        number = common.number_of(key)
        if timeout_ms <= 0:
            if not self._ask(f"SELECT pg_try_advisory_lock{kind}(%s)", number):
                raise Refused("busy")
        else:
            if timeout_ms != self._timeout_ms:
                self._ask("SELECT set_config('lock_timeout', %s, false)", f"{timeout_ms}ms")
                self._timeout_ms = timeout_ms
            self._ask(f"SELECT pg_advisory_lock{kind}(%s)", number)
        token = self._token(number, kind) if self.fenced else None
        unlock = f"SELECT pg_advisory_unlock{kind}(%s)"
        owner = f"{os.getpid()}/{self.connection.info.backend_pid}"
        return Grant(owner, token, (unlock, number))

    def _token(self, number: int, kind: str) -> int:
        try:
            return int(self._ask(f"SELECT nextval('{common.FENCE}')"))
        except errors.ReadOnlySqlTransaction as error:
            # No token, no grant; if the unlock fails too, nobody knows.
            if self._ask(f"SELECT pg_advisory_unlock{kind}(%s)", number) is not True:
                raise Unknown(f"{error}; then the unlock found no lock") from error
            raise

    def release(self, grant: Grant) -> None:
        if not self._ask(*grant.handle):
            raise Refused("not-held")

    def close(self) -> None:
        self.connection.close()

    def _ask(self, sql: str, *values: Any) -> Any:
        return self.connection.execute(sql, values).fetchone()[0]


ADAPTER = PsycopgAdvisory
