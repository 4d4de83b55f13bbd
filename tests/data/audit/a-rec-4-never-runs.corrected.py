import redis

r = redis.Redis()


def run(alarm) -> None:
    lock = r.lock("lock:a", timeout=30)
    if not lock.acquire(blocking_timeout=60):
        alarm("the lock is stuck")
        return
    try:
        print("working")
    finally:
        lock.release()
