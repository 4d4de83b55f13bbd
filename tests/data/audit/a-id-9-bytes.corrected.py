import uuid

import redis

r = redis.Redis(decode_responses=True)
KEY = "lock:report"


def mine(token: str) -> bool:
    return r.get(KEY) == token


def run() -> None:
    token = uuid.uuid4().hex
    if not r.set(KEY, token, nx=True, px=30_000):
        return
    if r.get(KEY) != token:
        raise RuntimeError("lost")
