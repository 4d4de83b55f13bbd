import redis

r = redis.Redis()


def run(alarm) -> None:
    lock = r.lock("lock:a", timeout=30)
    if not lock.acquire():
        alarm("the lock is stuck")  # expect: A-REC-4 recovery
        return
    try:
        print("working")
    finally:
        lock.release()
