import redis
from redis.exceptions import LockError

r = redis.Redis()


def bill():
    lock = r.lock("bill", timeout=30)
    if not lock.acquire(blocking=False):
        return
    try:
        print("billing")
    finally:
        try:
            lock.release()  # expect: A-REL-4 release_retry
        except LockError:
            pass
