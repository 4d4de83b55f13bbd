import asyncio

import redis.asyncio as redis

r = redis.Redis()


async def run(work) -> None:
    lock = r.lock("lock:a", timeout=30)
    if not await asyncio.wait_for(lock.acquire(), 5):  # expect: A-REL-8 release_retry
        return
    try:
        await work()
    finally:
        await lock.release()
