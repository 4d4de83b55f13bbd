import redis

r = redis.Redis()


def enter(name: str):
    lock = r.lock(name, timeout=30)
    try:
        if lock.acquire(blocking=False):
            return lock
        return None
    except redis.RedisError:  # expect: A-RETRY-4 release_retry
        return None
