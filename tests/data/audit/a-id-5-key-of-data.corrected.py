import redis

r = redis.Redis()


def add(order: str, line: str) -> None:
    with r.lock("lock:orders", timeout=10):
        r.hset("orders", order, line)
