import uuid

import redis

client = redis.Redis()
KEY = "leader"
RENEW = (
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end"
)


def lead(stop):
    me = uuid.uuid4().hex
    if not client.set(KEY, me, nx=True, px=15_000):
        return
    while not stop.wait(5):
        if not client.eval(RENEW, 1, KEY, me, 15_000):
            raise RuntimeError("the lease is over")
