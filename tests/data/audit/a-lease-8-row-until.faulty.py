import datetime

import psycopg


def take(c: psycopg.Connection, owner: str) -> bool:
    now = datetime.datetime.now()
    c.execute("SELECT pg_advisory_xact_lock(7)")
    row = c.execute(  # expect: A-LEASE-8 lease
        "UPDATE job_locks SET owner = %s WHERE expires_at < %s RETURNING fence", (owner, now)
    )
    return row.fetchone() is not None
