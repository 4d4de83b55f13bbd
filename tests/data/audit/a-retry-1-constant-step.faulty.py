import time

import redis

r = redis.Redis()


def enter(limit: int = 50):
    lock = r.lock("lock:a", timeout=30)
    for attempt in range(limit):  # expect: A-RETRY-1 release_retry
        if lock.acquire(blocking=False):
            return lock
        time.sleep(0.25)
    return None
