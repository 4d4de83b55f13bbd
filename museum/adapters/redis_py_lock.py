"""``redis.lock.Lock(client, name, ...)`` of redis-py 2.10 to 3.5, whose names differ from today's.

The class is named directly, as in the public reports: in 2.10 ``client.lock`` chose the Lua variant
where the server had scripts, and ``redis.lock.Lock`` was the one without; since 3.0 there is one.

Options: ``with_block`` (the statement instead of two calls: who is inside is a holder),
``decode_responses`` (of the client).
"""

import redis
from redis import exceptions
from redis.lock import Lock

from clients.worker.adapter import Grant, Lease, Refused

FOREIGN = "no longer owned"


class RedisPyLock:
    library = "redis-py-lock"
    distributions = ("redis",)
    lease = Lease("ttl")
    ERRORS = {}  # noqa: RUF012 - read only; the adapter contract has it as a plain table

    def open(self, nodes, options):
        unknown = sorted(set(options) - {"with_block", "decode_responses"})
        if unknown:
            raise Refused("unknown options: " + ", ".join(unknown))
        self.with_block = options.get("with_block", False)
        self.client = redis.StrictRedis(
            host=nodes[0]["host"],
            port=nodes[0]["port"],
            decode_responses=options.get("decode_responses", False),
        )

    def acquire(self, key, ttl_ms, timeout_ms):
        lock = Lock(self.client, key, timeout=ttl_ms / 1000, sleep=0.02)
        lock.blocking_timeout = timeout_ms / 1000
        if self.with_block:
            try:
                lock.__enter__()
            except exceptions.LockError as error:
                raise Refused("busy") from error
        elif not lock.acquire(blocking=timeout_ms > 0):
            raise Refused("busy")
        return Grant(owner=str(lock.local.token), handle=lock)

    def release(self, grant):
        try:
            grant.handle.release()
        except exceptions.LockError as error:
            if FOREIGN in str(error):
                raise Refused("not-held") from error
            raise Refused(str(error)) from error  # nothing was sent

    def close(self):
        self.client.connection_pool.disconnect()


ADAPTER = RedisPyLock
