import redis


def sweep(r: redis.Redis) -> None:
    guard = r.lock("lock:sweep", timeout=60)
    with guard:
        print("sweeping")
