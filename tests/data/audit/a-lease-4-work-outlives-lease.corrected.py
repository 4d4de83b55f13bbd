import time

import redis

r = redis.Redis()


def drain():
    with r.lock("drain", timeout=60):
        time.sleep(20)
