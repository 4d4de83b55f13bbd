import random
import time

import redis

r = redis.Redis()


def enter(limit: int = 50):
    lock = r.lock("lock:a", timeout=30)
    for attempt in range(limit):
        if lock.acquire(blocking=False):
            return lock
        time.sleep(min(5, 0.05 * 2**attempt) * random.uniform(0.5, 1))
    return None
