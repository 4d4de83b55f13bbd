"""Five independent Redis servers: what the Redlock algorithm asks for.

Example: ``[backend]`` with ``name = "redlock5"`` and ``options.persistence = "none"``.

No server knows of another: there is no replication, no leader and no link between them.  A client
that got a lock on three of the five holds it; that is the client library's doing, so the service
as a whole grants nothing and no node of it can be *the* primary.

Traps: the algorithm's proof needs servers that do not forget (``persistence = "aof"``, or a
restarted server that stays away for a whole lease); with ``none`` a restart of three at once
forgets every lock, which is worth a scenario.  INFO says ``role:master`` of each of the five.
The algorithm: Redis documentation, "Distributed Locks with Redis"; what is said against it:
M. Kleppmann, "How to do distributed locking" (2016).
"""

from __future__ import annotations

from compose.backends.resp import (
    RESP_OPTIONS,
    resp_local,
    resp_nodes,
    resp_programs,
    resp_server_args,
)
from compose.backends.spec import RELEASES, BackendSpec

REDLOCK5 = BackendSpec(
    name="redlock5",
    family="redis",
    nodes=resp_nodes("redis1", "redis2", "redis3", "redis4", "redis5"),
    local=resp_local("redis-server", "valkey-server"),
    compose_file="redlock5.yaml",
    image="redis",
    releases=RELEASES,
    releases_refused={},
    options=RESP_OPTIONS,
    server_args=resp_server_args,
    no_primary="its five servers are independent and each grants for itself",
    programs=resp_programs("redis"),
)
