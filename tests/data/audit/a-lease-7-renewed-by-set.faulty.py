import uuid

import redis

client = redis.Redis()
KEY = "leader"


def lead(stop):
    me = uuid.uuid4().hex
    if not client.set(KEY, me, nx=True, px=15_000):
        return
    while not stop.wait(5):
        client.set(KEY, me, px=15_000)  # expect: A-LEASE-7 lease
