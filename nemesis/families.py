"""Which kind of server a backend is made of: what a fault must know before anything starts.

    family_of("redis-sentinel")     # "redis"

Faults that speak to a server in its own tongue (flush, memory-pressure ...) say in ``families``
whom they can speak to.  Valkey answers to all that Redis does here, so it is of the same family;
the simulated server is a Redis in virtual time.

Trap: a backend of a third party is of no known family unless its name begins like one of these;
such faults then refuse it, instead of guessing.
"""

from __future__ import annotations

from collections.abc import Mapping

# Beginning of a backend's name -> family.
PREFIXES: Mapping[str, str] = {
    "redis": "redis",
    "redlock": "redis",
    "valkey": "redis",
    "sim": "redis",
    "etcd": "etcd",
    "zookeeper": "zookeeper",
    "postgres": "postgres",
}


def family_of(backend: str) -> str:
    """redis | etcd | zookeeper | postgres, or "" for a backend that nobody told us about."""
    return next((family for start, family in PREFIXES.items() if backend.startswith(start)), "")
