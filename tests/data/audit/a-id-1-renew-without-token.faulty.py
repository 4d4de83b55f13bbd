import time
import uuid

import redis

client = redis.Redis()
KEY = "leader"


def lead(stop):
    me = uuid.uuid4().hex
    if not client.set(KEY, me, nx=True, ex=15):
        return
    while not stop.wait(5):
        client.expire(KEY, 15)  # expect: A-ID-1 lease; A-LEASE-6 lease
        time.sleep(0)
