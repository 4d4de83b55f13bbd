import uuid

import redis

r = redis.Redis()
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"


def export():
    token = uuid.uuid4().hex
    if r.set("lock:export", token, nx=True, ex=60):
        try:
            print("exporting")
        finally:
            r.eval(RELEASE, 1, "lock:export", token)
