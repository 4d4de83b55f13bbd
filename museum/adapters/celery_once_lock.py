"""celery-once's Redis backend: the mark that a task is queued, taken and cleared as a lock.

``raise_or_lock(key, timeout)`` is what ``apply_async`` of a ``QueueOnce`` task calls, and
``clear_lock(key)`` what is called after the task has run.
"""

import time

from celery_once.backends.redis import Redis
from celery_once.tasks import AlreadyQueued

from clients.worker.adapter import Grant, Lease, Refused


class CeleryOnce:
    library = "celery-once"
    distributions = ("celery-once", "celery", "redis")
    lease = Lease("ttl")
    ERRORS = {}  # noqa: RUF012 - read only; the adapter contract has it as a plain table

    def open(self, nodes, options):
        if options:
            raise Refused("there are no options")
        url = "redis://{host}:{port}/0".format(**nodes[0])
        self.backend, self.taken = Redis({"url": url}), 0

    def acquire(self, key, ttl_ms, timeout_ms):
        until = time.monotonic() + timeout_ms / 1000
        while True:
            try:
                self.backend.raise_or_lock(key, timeout=max(1, ttl_ms // 1000))
                self.taken += 1
                return Grant(owner=f"{id(self):x}-{self.taken}", handle=key)
            except AlreadyQueued as error:
                if time.monotonic() >= until:
                    raise Refused("busy") from error
            time.sleep(0.02)

    def release(self, grant):
        if not self.backend.clear_lock(grant.handle):
            raise Refused("not-held")

    def close(self):
        self.backend.redis.connection_pool.disconnect()


ADAPTER = CeleryOnce
