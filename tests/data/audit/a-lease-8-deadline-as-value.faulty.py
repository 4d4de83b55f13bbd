import time

import redis

r = redis.Redis()


def take(name: str) -> bool:
    return bool(r.set(f"lock:{name}", time.time() + 30, nx=True, ex=30))  # expect: A-LEASE-8 lease
