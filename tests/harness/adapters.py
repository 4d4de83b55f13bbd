"""Adapter files as text: written to disk by tests and loaded by real workers."""

MEMORY_ADAPTER = '''
"""A lock in the worker's own memory: enough for the protocol, useless as a lock."""
from clients.worker.adapter import Grant, Lease, Refused


class Memory:
    library = "memory"
    distributions = ()
    lease = Lease("none", None)
    ERRORS = {}

    def __init__(self, **args):
        self.held = {}

    def open(self, nodes, options):
        pass

    def acquire(self, key, ttl_ms, timeout_ms):
        if key in self.held:
            raise Refused("busy")
        self.held[key] = True
        return Grant("me")

    def release(self, grant):
        self.held.clear()

    def close(self):
        self.held.clear()


ADAPTER = Memory
'''
