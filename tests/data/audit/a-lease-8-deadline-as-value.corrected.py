import uuid

import redis

r = redis.Redis()


def take(name: str, token: str = "") -> bool:
    token = uuid.uuid4().hex
    return bool(r.set(f"lock:{name}", token, nx=True, ex=30))
