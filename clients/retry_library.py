"""lockhavoc's own retry loop as a library that can be put under test.

    LIBRARIES.load("retry-loop")

Its package is ``clients.retry``, which the adapter imports from this very checkout.
"""

from __future__ import annotations

from clients.libraries import ROOM, Library

RETRY_LOOP = Library(
    name="retry-loop",
    adapter=ROOM / "adapters" / "retry_loop.py",
    requirements=ROOM / "requirements" / "retry-loop.txt",
    imports=("pydantic",),
    backends=("redis-single", "valkey-single"),
    powers=("renew", "believes"),
    says="lockhavoc's RetryLoop on a queued lock: first come, first served, waits by the rules",
)
