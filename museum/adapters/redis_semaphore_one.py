"""``redis_semaphore.Semaphore(client, count=1, namespace=...)`` as a lock, made where it is used.

Each attempt makes its own object, as every process of an application does.  Nothing ends the place
of a holder that died (``stale_client_timeout`` is left out), so the lease is none.
"""

import redis
import redis_semaphore

from clients.worker.adapter import Grant, Lease, Refused

# Since 0.2 a wait that is over raises; before, it returned None.
GAVE_UP = getattr(redis_semaphore, "NotAvailable", ())


class One:
    library = "redis-semaphore"
    distributions = ("redis-semaphore", "redis")
    lease = Lease("none")
    ERRORS = {}  # noqa: RUF012 - read only; the adapter contract has it as a plain table

    def open(self, nodes, options):
        if options:
            raise Refused("there are no options")
        self.client = redis.StrictRedis(host=nodes[0]["host"], port=nodes[0]["port"])

    def acquire(self, key, ttl_ms, timeout_ms):
        semaphore = redis_semaphore.Semaphore(self.client, count=1, namespace=key)
        try:
            token = semaphore.acquire(timeout=max(1, timeout_ms // 1000))
        except GAVE_UP as error:
            raise Refused("busy") from error
        if token is None:
            raise Refused("busy")
        return Grant(owner=f"{id(semaphore):x}", handle=semaphore)

    def release(self, grant):
        if not grant.handle.release():
            raise Refused("not-held")

    def close(self):
        self.client.connection_pool.disconnect()


ADAPTER = One
