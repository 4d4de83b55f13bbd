import psycopg


def take(c: psycopg.Connection, owner: str) -> bool:
    c.execute("SELECT pg_advisory_xact_lock(7)")
    row = c.execute(
        "UPDATE job_locks SET owner = %s WHERE expires_at < now() RETURNING fence", (owner,)
    )
    return row.fetchone() is not None
