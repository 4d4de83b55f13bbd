import psycopg


def migrate(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("SELECT pg_advisory_lock(42)")
        try:
            conn.execute("ALTER TABLE t ADD COLUMN c int")
        finally:
            if not conn.execute("SELECT pg_advisory_unlock(42)").fetchone()[0]:
                raise RuntimeError("this session did not hold the lock")
