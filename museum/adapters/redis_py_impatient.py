"""redis-py's asyncio lock under an application that gives each try a time limit and tries again.

``asyncio.wait_for(lock.acquire(...), limit)`` is how asyncio code bounds a wait.  A try that is cut
off may have got the lock at the server, where it stays until its lease ends; that costs time, not
safety.  What it must not do is to leave its answer in the connection for whoever comes next.

Option ``try_ms``: the limit of one try.
"""

import asyncio
import time

import redis.asyncio
from redis import exceptions

from clients.worker.adapter import Grant, Lease, Refused, Unknown


class Impatient:
    library = "redis-py-impatient"
    distributions = ("redis",)
    lease = Lease("ttl")
    ERRORS = {}  # noqa: RUF012 - read only; the adapter contract has it as a plain table

    async def open(self, nodes, options):
        unknown = sorted(set(options) - {"try_ms"})
        if unknown:
            raise Refused("unknown options: " + ", ".join(unknown))
        self.try_s = options.get("try_ms", 50) / 1000
        self.client = redis.asyncio.Redis(host=nodes[0]["host"], port=nodes[0]["port"])

    async def acquire(self, key, ttl_ms, timeout_ms):
        until = time.monotonic() + timeout_ms / 1000
        cut_off = False
        while True:
            lock = self.client.lock(key, timeout=ttl_ms / 1000)
            try:
                if await asyncio.wait_for(lock.acquire(blocking=False), self.try_s):
                    return Grant(owner=lock.local.token.decode(), handle=lock)
            except asyncio.TimeoutError:  # noqa: UP041 - another class before Python 3.11
                cut_off = True
            if time.monotonic() >= until:
                if cut_off:
                    raise Unknown("a try that was cut off may have got the lock")
                raise Refused("busy")
            await asyncio.sleep(0)

    async def release(self, grant):
        try:
            await grant.handle.release()
        except exceptions.LockNotOwnedError as error:
            raise Refused("not-held") from error

    async def close(self):
        await self.client.connection_pool.disconnect()


ADAPTER = Impatient
