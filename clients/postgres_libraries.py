"""Lock libraries on PostgreSQL, as data.

LIBRARIES.load("psycopg").lease        # "connection"
"""

from __future__ import annotations

from collections.abc import Mapping

from clients.libraries import ROOM, Library

BACKENDS = ("postgres1", "postgres-ha", "postgres-pgbouncer")
_SEQUENCE = "nextval of a sequence, in the session that holds the lock"


def _psycopg(
    name: str,
    file: str,
    *,
    fencing: str = "",
    args: Mapping[str, str] | None = None,
    reads: bool = False,
    says: str,
) -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / "psycopg.txt",
        imports=("psycopg",),
        backends=BACKENDS,
        args=args or {},
        lease="connection",
        powers=(*(["fenced"] if fencing else []), *(["read"] if reads else [])),
        fencing=fencing,
        says=says,
    )


PSYCOPG = _psycopg(
    "psycopg",
    "psycopg_advisory.py",
    reads=True,
    says="pg_advisory_lock on a connection of psycopg, by hand; _shared for readers",
)
PSYCOPG_FENCED = _psycopg(
    "psycopg-fenced",
    "psycopg_advisory.py",
    fencing=_SEQUENCE,
    args={"fenced": "yes"},
    reads=True,
    says="the same lock; each grant draws a token from a sequence",
)
PSYCOPG_XACT = _psycopg(
    "psycopg-xact",
    "psycopg_xact.py",
    fencing="nextval of a sequence, on a second connection in autocommit",
    says="pg_advisory_xact_lock: the lock of a transaction, with a token",
)


def _session(name: str, file: str, *, imports: str, says: str, told: bool = False) -> Library:
    """A library whose locks are a session's advisory locks."""
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / f"{name}.txt",
        imports=(imports,),
        backends=("postgres1",),
        lease="connection",
        powers=("signals-loss",) if told else (),
        loss_signal="callback" if told else "none",
        says=says,
    )


ASYNCPG = _session(
    "asyncpg",
    "asyncpg_advisory.py",
    imports="asyncpg",
    told=True,
    says="pg_advisory_lock on a connection of asyncpg, by hand",
)
DJANGO_PGLOCK = _session(
    "django-pglock",
    "django_pglock.py",
    imports="pglock",
    says="pglock.advisory() on Django's connection",
)
PALS = _session(
    "pals", "pals_lock.py", imports="pals", says="pals.Locker().lock(), one connection per lock"
)
SQLALCHEMY_DLOCK = _session(
    "sqlalchemy-dlock",
    "sqlalchemy_dlock.py",
    imports="sqlalchemy_dlock",
    says="sqlalchemy_dlock.create_sadlock(connection, key), whose waits are a loop",
)
POSTGRES_MUTEX = Library(
    name="postgres-mutex",
    adapter=ROOM / "adapters" / "postgres_mutex.py",
    requirements=ROOM / "requirements" / "postgres-mutex.txt",
    imports=("postgres_mutex",),
    backends=("postgres1",),
    lease="ttl",
    powers=("renew", "believes"),
    loss_signal="flag",
    says="postgres_mutex.Mutex(), a row that a thread touches; contenders judge its age",
    extra={"renews": "by itself"},
)
