import os
import socket

import redis

r = redis.Redis()
ME = f"{socket.gethostname()}:{os.getpid()}"
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"


def sweep(lock_key):
    if not r.set(lock_key, ME, nx=True, ex=60):  # expect: A-ID-2 identity
        return
    try:
        print("sweeping")
    finally:
        r.eval(RELEASE, 1, lock_key, ME)
