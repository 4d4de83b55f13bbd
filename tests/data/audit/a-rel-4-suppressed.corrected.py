import redis

r = redis.Redis()


def bill():
    lock = r.lock("bill", timeout=30)
    if not lock.acquire(blocking=False):
        return
    try:
        print("billing")
    finally:
        lock.release()
