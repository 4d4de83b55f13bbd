import time
import uuid

import redis

r = redis.Redis()
LEASE_S = 30


def run(step) -> None:
    token = uuid.uuid4().hex
    start = time.monotonic()
    if not r.set("lock:export", token, nx=True, ex=LEASE_S):
        return
    lease_until = start + LEASE_S * 0.9
    while time.monotonic() < lease_until:
        step(token)
