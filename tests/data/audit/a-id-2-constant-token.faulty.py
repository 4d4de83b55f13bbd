import redis

r = redis.Redis()
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"


def sweep():
    if not r.set("lock:sweep", "locked", nx=True, ex=60):  # expect: A-ID-2 identity
        return
    try:
        print("sweeping")
    finally:
        r.eval(RELEASE, 1, "lock:sweep", "locked")
