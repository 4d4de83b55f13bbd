import psycopg


def run(dsn: str, name: str) -> None:
    with psycopg.connect(dsn) as c:
        c.execute("SELECT pg_advisory_xact_lock(%s)", (hash(name),))  # expect: A-ID-4 identity
        c.execute("UPDATE jobs SET done = true, version = version + 1 WHERE name = %s", (name,))
