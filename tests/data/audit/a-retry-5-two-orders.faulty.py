import redis

r = redis.Redis()


def pay() -> None:
    with r.lock("lock:account", timeout=10):
        with r.lock("lock:order", timeout=10):  # expect: A-RETRY-5 release_retry
            print("paid")


def cancel() -> None:
    with r.lock("lock:order", timeout=10):
        with r.lock("lock:account", timeout=10):  # expect: A-RETRY-5 release_retry
            print("cancelled")
