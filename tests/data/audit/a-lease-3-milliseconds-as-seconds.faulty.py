import redis

LOCK_TTL_MS = 30_000
r = redis.Redis()


def work():
    with r.lock("work", timeout=LOCK_TTL_MS):  # expect: A-LEASE-3 lease
        print("working")
