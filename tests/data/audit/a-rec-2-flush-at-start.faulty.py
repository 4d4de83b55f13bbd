import redis

r = redis.Redis()


def main() -> None:
    r.delete(*r.keys("lock:*"))  # expect: A-REC-2 recovery
    with r.lock("lock:main", timeout=10):
        print("working")
