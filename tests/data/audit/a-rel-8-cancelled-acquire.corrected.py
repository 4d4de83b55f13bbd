import redis.asyncio as redis

r = redis.Redis()


async def run(work) -> None:
    lock = r.lock("lock:a", timeout=30, blocking_timeout=5)
    if not await lock.acquire():
        return
    try:
        await work()
    finally:
        await lock.release()
