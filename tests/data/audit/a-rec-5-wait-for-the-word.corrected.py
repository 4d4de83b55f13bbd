import time
import uuid

import redis

r = redis.Redis()


def acquire_lock(name: str, deadline: float) -> str | None:
    token = uuid.uuid4().hex
    while time.monotonic() < deadline:
        if r.set(f"lock:{name}", token, nx=True, px=10_000):
            return token
        r.blpop(f"lock:{name}:free", 5)
    return None
