import redis

LOCK_TTL_MS = 30_000
r = redis.Redis()


def work():
    with r.lock("work", timeout=LOCK_TTL_MS / 1000):
        print("working")
