"""Lock libraries on PostgreSQL, as data.

LIBRARIES.load("psycopg").lease        # "connection"
"""

from __future__ import annotations

from collections.abc import Mapping

from clients.libraries import ROOM, Library

BACKENDS = ("postgres1", "postgres-ha", "postgres-pgbouncer")
_SEQUENCE = "nextval of a sequence, in the session that holds the lock"


def _psycopg(
    name: str, file: str, *, fencing: str = "", args: Mapping[str, str] | None = None, says: str
) -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / "psycopg.txt",
        imports=("psycopg",),
        backends=BACKENDS,
        args=args or {},
        lease="connection",
        powers=("fenced",) if fencing else (),
        fencing=fencing,
        says=says,
    )


PSYCOPG = _psycopg(
    "psycopg", "psycopg_advisory.py", says="pg_advisory_lock on a connection of psycopg, by hand"
)
PSYCOPG_FENCED = _psycopg(
    "psycopg-fenced",
    "psycopg_advisory.py",
    fencing=_SEQUENCE,
    args={"fenced": "yes"},
    says="the same lock; each grant draws a token from a sequence",
)
PSYCOPG_XACT = _psycopg(
    "psycopg-xact",
    "psycopg_xact.py",
    fencing=_SEQUENCE,
    says="pg_advisory_xact_lock: the lock of a transaction, with a token",
)
