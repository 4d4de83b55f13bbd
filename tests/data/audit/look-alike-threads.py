import asyncio
import threading

import redis

client = redis.Redis()
guard = threading.Lock()
gate = asyncio.Lock()


def count():
    guard.acquire()
    client.incr("count")
    guard.release()
    with threading.RLock():
        client.delete("count")
