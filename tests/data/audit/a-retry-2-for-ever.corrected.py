import random
import time
import uuid

import redis

r = redis.Redis()


def enter(limit_s: float) -> str:
    token = uuid.uuid4().hex
    deadline = time.monotonic() + limit_s
    while True:
        if r.set("lock:a", token, nx=True, px=30_000):
            return token
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(random.uniform(0.1, 0.5))
