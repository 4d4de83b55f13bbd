"""huey's ``lock_task(name)``, the lock around a task; option ``ttl`` (since 3.5) ends it."""

import time

from huey import RedisHuey
from huey.exceptions import TaskLockedException

from clients.worker.adapter import Grant, Lease, Refused


class HueyLock:
    library = "huey"
    distributions = ("huey", "redis")
    lease = Lease("ttl")
    ERRORS = {}  # noqa: RUF012 - read only; the adapter contract has it as a plain table

    def open(self, nodes, options):
        unknown = sorted(set(options) - {"ttl"})
        if unknown:
            raise Refused("unknown options: " + ", ".join(unknown))
        self.with_ttl = options.get("ttl", False)
        self.huey = RedisHuey("museum", host=nodes[0]["host"], port=nodes[0]["port"])

    def acquire(self, key, ttl_ms, timeout_ms):
        more = {"ttl": max(1, ttl_ms // 1000)} if self.with_ttl else {}
        lock, until = self.huey.lock_task(key, **more), time.monotonic() + timeout_ms / 1000
        while True:
            try:
                lock.__enter__()
                return Grant(owner=f"{id(lock):x}", handle=lock)
            except TaskLockedException as error:
                if time.monotonic() >= until:
                    raise Refused("busy") from error
            time.sleep(0.02)

    def release(self, grant):
        grant.handle.__exit__(None, None, None)

    def close(self):
        self.huey.storage.pool.disconnect()


ADAPTER = HueyLock
