import redis
from psycopg_pool import ConnectionPool

r = redis.Redis()
pool = ConnectionPool("dbname=shop", max_size=4)


def move(row: int) -> None:
    with r.lock("lock:rows", timeout=10):
        with pool.connection() as c:
            c.execute("SELECT 1")
