import time
import uuid

import redis

r = redis.Redis()
LEASE_S = 30


def run(step) -> None:
    token = uuid.uuid4().hex
    if not r.set("lock:export", token, nx=True, ex=LEASE_S):
        return
    lease_until = time.monotonic() + LEASE_S  # expect: A-LEASE-9 lease
    while time.monotonic() < lease_until:
        step(token)
