import os
import socket
from uuid import uuid4

import redis

r = redis.Redis()
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"


def sweep(lock_key):
    me = f"{socket.gethostname()}:{os.getpid()}:{uuid4()}"
    if not r.set(lock_key, me, nx=True, ex=60):
        return
    try:
        print("sweeping")
    finally:
        r.eval(RELEASE, 1, lock_key, me)
