import psycopg


def run(dsn: str, name: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (hash(name),))  # expect: A-ID-4 identity
        connection.execute("UPDATE jobs SET done = true, version = version + 1 WHERE name = %s", (name,))
