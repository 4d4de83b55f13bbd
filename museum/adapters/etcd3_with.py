"""``with client.lock(name, ttl):`` of python-etcd3, and of its fork where that is installed.

Whoever is inside of the block is a holder: ``acquire`` is ``__enter__``, ``release`` is
``__exit__``.  The statement waits for at most 10 s, the default of the library's ``acquire``.
"""

try:
    from etcd3 import client as connect
except ImportError:
    from pyetcd import client as connect

from importlib.metadata import distributions as _all

from clients.worker.adapter import Grant, Lease, Refused

HERE = {found.metadata["Name"] for found in _all()}


class Etcd3With:
    library = "etcd3-with"
    distributions = tuple(name for name in ("etcd3", "etcd-sdk-python") if name in HERE)
    lease = Lease("ttl")
    ERRORS = {}  # noqa: RUF012 - read only; the adapter contract has it as a plain table

    def open(self, nodes, options):
        if options:
            raise Refused("there are no options")
        own = next((node for node in nodes if node.get("own")), nodes[0])
        self.client = connect(host=own["host"], port=own["port"])

    def acquire(self, key, ttl_ms, timeout_ms):
        lock = self.client.lock(key, ttl=ttl_ms // 1000)
        lock.__enter__()
        return Grant(owner=lock.uuid.hex(), handle=lock)

    def release(self, grant):
        if not grant.handle.release():  # what __exit__ calls, and forgets the answer of
            raise Refused("not-held")

    def close(self):
        self.client.close()


ADAPTER = Etcd3With
