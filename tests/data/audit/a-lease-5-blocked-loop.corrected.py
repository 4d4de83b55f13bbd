import asyncio

import redis.asyncio as redis

r = redis.Redis()


async def renew(lock) -> None:
    while True:
        await asyncio.sleep(3)
        await lock.extend(10)


async def build() -> None:
    lock = r.lock("lock:build", timeout=10)
    async with lock:
        task = asyncio.create_task(renew(lock))
        process = await asyncio.create_subprocess_exec("make")
        await process.wait()
        task.cancel()
