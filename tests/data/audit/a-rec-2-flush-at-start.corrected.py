import redis

r = redis.Redis()


def main() -> None:
    with r.lock("lock:main", timeout=10):
        print("working")
