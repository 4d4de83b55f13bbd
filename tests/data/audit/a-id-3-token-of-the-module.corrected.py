import uuid

import redis

r = redis.Redis()
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"


def sweep():
    token = str(uuid.uuid4())
    if not r.set("lock:sweep", token, nx=True, ex=60):
        return
    try:
        print("sweeping")
    finally:
        r.eval(RELEASE, 1, "lock:sweep", token)
