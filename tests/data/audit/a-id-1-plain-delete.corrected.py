import uuid

import redis

r = redis.Redis()
RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('del', KEYS[1])
end
return 0
"""


def rebuild(name):
    key = f"lock:{name}"
    token = uuid.uuid4().hex
    if not r.set(key, token, nx=True, px=30_000):
        return False
    try:
        build(name)
    finally:
        r.eval(RELEASE, 1, key, token)
    return True


def build(name):
    print(name)
