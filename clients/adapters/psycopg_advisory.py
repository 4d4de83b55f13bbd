"""psycopg with session advisory locks, by hand: the lock lives as long as its connection.

    pg_try_advisory_lock(k)                      timeout_ms = 0
    SET lock_timeout; pg_advisory_lock(k)        with a time to wait
    pg_advisory_unlock(k)

and for readers the same functions ending in ``_shared``.

In a pool (workload ``pool``) connections come from psycopg_pool.ConnectionPool: one for each call,
or one for as long as the lock is held (psycopg_pooled.py).

With ``--adapter-arg fenced=yes`` each grant draws a token from a sequence, in the same session,
after the lock was got and in a transaction of its own: a later holder draws later, so tokens grow,
and one that was given is on disk (``psycopg_common.draw_token``).

Traps.  The holder is *told nothing*: if the server ends the session (a restart, a fail-over,
``pg_terminate_backend``, ``idle_session_timeout``), the lock is gone, and the client learns of it
with its next statement, which may be the unlock.  No ttl: ``ttl_ms`` is not used, and a holder that
hangs holds for ever.  Advisory locks are re-entrant in a session: two clients that share one (by a
pooler) both get the lock.  A sequence's value may be lost with a fail-over to a standby that is
behind; then tokens are given again.

And one that few know: a wait that ``lock_timeout`` or a cancellation ends may have been granted in
that moment.  The server then reports the error and the *session keeps the lock* (LockErrorCleanup
in PostgreSQL's proc.c remembers it, and only locks of transactions end with the statement), so
that everybody waits for a lock that nobody believes in.  Hence an unlock after each such error.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from psycopg import errors

from clients.adapters import psycopg_common as common
from clients.adapters.psycopg_pooled import Pooled
from clients.worker.adapter import Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clients.worker.adapter import Definite

SET_TIMEOUT = "SELECT set_config('lock_timeout', %s, false)"


class PsycopgAdvisory(Pooled):
    """One connection, one session, any number of locks in it; or a pool of them."""

    library = "psycopg"
    distributions = ("psycopg",)
    lease = Lease("connection")
    ERRORS: Mapping[type[BaseException], Definite] = common.ERRORS

    def __init__(self, fenced: str = "no") -> None:
        self.fenced = fenced == "yes"
        self._timeouts_ms: dict[int, int] = {}  # session at the server -> its lock_timeout

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.open_any(nodes, options)
        self._timeouts_ms.clear()
        if self.fenced:
            with self.lent() as lent:
                common.make_fence(lent.connection)

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        return self._acquire(key, timeout_ms, "")

    def acquire_read(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        return self._acquire(key, timeout_ms, "_shared")

    def _acquire(self, key: str, timeout_ms: int, kind: str) -> Grant:
        number, unlock = common.number_of(key), f"SELECT pg_advisory_unlock{kind}(%s)"
        with self.lent() as lent:
            connection, session = lent.connection, lent.connection.info.backend_pid
            if timeout_ms <= 0:
                if not _ask(connection, f"SELECT pg_try_advisory_lock{kind}(%s)", number):
                    raise Refused("busy")
            else:
                if timeout_ms != self._timeouts_ms.get(session):
                    _ask(connection, SET_TIMEOUT, f"{timeout_ms}ms")
                    self._timeouts_ms[session] = timeout_ms
                _wait(connection, f"SELECT pg_advisory_lock{kind}(%s)", unlock, number)
            token = _token(connection, unlock, number) if self.fenced else None
            return Grant(f"{os.getpid()}/{session}", token, (unlock, number, lent.kept()))

    def release(self, grant: Grant) -> None:
        unlock, number, kept = grant.handle
        with self.lent(kept) as lent:
            if not _ask(lent.connection, unlock, number):
                raise Refused("not-held")

    def close(self) -> None:
        self.close_any()


def _ask(connection: Any, sql: str, *values: Any) -> Any:
    return connection.execute(sql, values).fetchone()[0]


def _wait(connection: Any, lock: str, unlock: str, number: int) -> None:
    """Waits at the server.  Whoever is refused gives back what was granted in the same moment."""
    try:
        _ask(connection, lock, number)
    except (errors.LockNotAvailable, errors.QueryCanceled):
        _ask(connection, unlock, number)  # false, as a rule: see the traps
        raise


def _token(connection: Any, unlock: str, number: int) -> int:
    try:
        return common.draw_token(connection)
    except errors.ReadOnlySqlTransaction as error:
        # No token, no grant; if the unlock fails too, nobody knows.
        if _ask(connection, unlock, number) is not True:
            raise Unknown(f"{error}; then the unlock found no lock") from error
        raise


ADAPTER = PsycopgAdvisory
