import uuid

import redis

r = redis.Redis()


def acquire_lock(name: str) -> str:
    token = uuid.uuid4().hex
    while not r.set(f"lock:{name}", token, nx=True, px=10_000):  # expect: A-RETRY-2 release_retry
        r.blpop(f"lock:{name}:free", 0)  # expect: A-REC-5 recovery
    return token
