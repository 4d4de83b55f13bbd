"""``client.lock(name, timeout=, sleep=)`` of redis-py up to 2.9, whose lock is a time stamp.

The key holds the wall-clock time at which the lock ends; ``release`` deletes the key if that is not
before the end of one's own.  Later releases hold a token, and this file works with them too.
"""

import time

import redis

from clients.worker.adapter import Grant, Lease, Refused


class Timestamps:
    library = "redis-py-timestamps"
    distributions = ("redis",)
    lease = Lease("ttl")
    ERRORS = {}  # noqa: RUF012 - read only; the adapter contract has it as a plain table

    def open(self, nodes, options):
        if options:
            raise Refused("there are no options")
        self.client = redis.StrictRedis(host=nodes[0]["host"], port=nodes[0]["port"])

    def acquire(self, key, ttl_ms, timeout_ms):
        seconds = ttl_ms // 1000 or 1
        lock = self.client.lock(key, timeout=seconds, sleep=0.02)
        until = time.monotonic() + timeout_ms / 1000
        while not lock.acquire(blocking=False):
            if time.monotonic() >= until:
                raise Refused("busy")
            time.sleep(0.02)
        owner = getattr(lock, "acquired_until", None) or lock.local.token
        return Grant(owner=str(owner), handle=lock)

    def release(self, grant):
        try:
            grant.handle.release()
        except redis.exceptions.RedisError as error:
            if "no longer owned" in str(error):
                raise Refused("not-held") from error
            raise

    def close(self):
        self.client.connection_pool.disconnect()


ADAPTER = Timestamps
