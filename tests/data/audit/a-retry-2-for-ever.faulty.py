import random
import time
import uuid

import redis

r = redis.Redis()


def enter() -> str:
    token = uuid.uuid4().hex
    while True:  # expect: A-RETRY-2 release_retry
        if r.set("lock:a", token, nx=True, px=30_000):
            return token
        time.sleep(random.uniform(0.1, 0.5))
