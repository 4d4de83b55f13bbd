import psycopg


def migrate(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("SELECT pg_advisory_lock(42)")
        try:
            conn.execute("ALTER TABLE t ADD COLUMN c int")
        finally:
            conn.execute("SELECT pg_advisory_unlock(42)")  # expect: A-REL-2 release_retry
