from psycopg_pool import ConnectionPool

pool = ConnectionPool("dbname=app")


def close_books(day):
    with pool.connection() as conn:
        conn.execute("SELECT pg_advisory_lock(%s)", (day,))
        try:
            print("closing", day)
        finally:
            row = conn.execute("SELECT pg_advisory_unlock(%s)", (day,)).fetchone()
            if not row[0]:
                raise RuntimeError("not held")
