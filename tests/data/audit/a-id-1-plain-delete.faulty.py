import uuid

import redis

r = redis.Redis()


def rebuild(name):
    key = f"lock:{name}"
    token = uuid.uuid4().hex
    if not r.set(key, token, nx=True, px=30_000):
        return False
    try:
        build(name)
    finally:
        r.delete(key)  # expect: A-ID-1 release_retry
    return True


def build(name):
    print(name)
