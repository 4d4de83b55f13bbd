import redis

r = redis.Redis()


class Unreachable(Exception):
    pass


def enter(name: str):
    lock = r.lock(name, timeout=30)
    try:
        if lock.acquire(blocking=False):
            return lock
        return None
    except redis.RedisError as error:
        raise Unreachable from error
