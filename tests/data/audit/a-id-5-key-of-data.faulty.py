import redis

r = redis.Redis()


def add(order: str, line: str) -> None:
    with r.lock("orders", timeout=10):
        r.hset("orders", order, line)  # expect: A-ID-5 identity
