import asyncio
import subprocess

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
        subprocess.run(["make"], check=True)  # expect: A-LEASE-5 lease
        task.cancel()
