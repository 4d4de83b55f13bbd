"""``with redlock.RedLock(name, [server], ttl=...):`` of the package ``redlock`` (not redlock-py).

Whoever is inside of the block is a holder: ``acquire`` is ``__enter__``, ``release`` is
``__exit__``.  The library tries a number of times with a random pause; option ``tries`` says how
often.  Its release tells nothing, so a lock that went meanwhile cannot be told from one that was
given back.
"""

import redlock

from clients.worker.adapter import Grant, Lease, Refused


class RedlockWith:
    library = "redlock-with"
    distributions = ("redlock", "redis")
    lease = Lease("ttl")
    ERRORS = {}  # noqa: RUF012 - read only; the adapter contract has it as a plain table

    def open(self, nodes, options):
        unknown = sorted(set(options) - {"tries"})
        if unknown:
            raise Refused("unknown options: " + ", ".join(unknown))
        self.tries = options.get("tries", 3)
        servers = [{"host": node["host"], "port": node["port"]} for node in nodes]
        self.factory = redlock.RedLockFactory(servers)

    def acquire(self, key, ttl_ms, timeout_ms):
        lock = self.factory.create_lock(key, ttl=ttl_ms, retry_times=self.tries, retry_delay=100)
        try:
            lock.__enter__()
        except redlock.RedLockError as error:  # with one server that is the server's word
            raise Refused("busy") from error
        return Grant(owner=lock.lock_key, handle=lock)

    def release(self, grant):
        grant.handle.__exit__(None, None, None)

    def close(self):
        for node in self.factory.redis_nodes:
            node.connection_pool.disconnect()


ADAPTER = RedlockWith
