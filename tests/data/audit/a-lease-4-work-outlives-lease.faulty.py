import time

import redis

r = redis.Redis()


def drain():
    with r.lock("drain", timeout=5):
        time.sleep(20)  # expect: A-LEASE-4 lease
