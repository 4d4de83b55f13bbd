import redis
from psycopg_pool import ConnectionPool

r = redis.Redis()
pool = ConnectionPool("dbname=shop", max_size=4)


def move(row: int) -> None:
    with pool.connection() as c:
        with r.lock("lock:rows", timeout=10):  # expect: A-RETRY-6 release_retry
            c.execute("SELECT 1")
