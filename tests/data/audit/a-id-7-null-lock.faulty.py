from contextlib import nullcontext

import redis


def sweep(r: redis.Redis, locking: bool) -> None:
    guard = r.lock("lock:sweep", timeout=60) if locking else nullcontext()
    with guard:  # expect: A-ID-7 identity
        print("sweeping")
