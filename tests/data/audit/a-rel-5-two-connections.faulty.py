from psycopg_pool import ConnectionPool

pool = ConnectionPool("dbname=app")


def close_books(day):
    with pool.connection() as conn:
        conn.execute("SELECT pg_advisory_lock(%s)", (day,))
    try:
        print("closing", day)
    finally:
        with pool.connection() as conn2:
            # expect on line 14: A-REL-5 release_retry
            row = conn2.execute("SELECT pg_advisory_unlock(%s)", (day,)).fetchone()
            if not row[0]:
                raise RuntimeError("not held")
