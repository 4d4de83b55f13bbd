"""One Redis server: the service most locks run on.

Example: ``[backend]`` with ``name = "redis-single"`` and ``options.persistence = "none"``.

Traps: a local process is redis-server if there is one on PATH, else valkey-server, which speaks
the same protocol and is to be had as a wheel; ``Cluster.versions`` names the one that answered.
With ``persistence = "none"`` a killed server forgets every lock, which is how many caches run in
production, so it is offered and named.  With ``aof`` each write reaches the kernel before the
reply does, so that a *killed process* loses nothing without any fsync; a machine that loses power
might.  Not ``appendfsync everysec``: while a background fsync is slow it answers first and puts
the write off for up to two seconds (aof.c, flushAppendOnlyFile), and a kill then loses grants
that were given.  ``always`` would hold too, at half the speed and at the mercy of the disk.
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

REDIS_SINGLE = BackendSpec(
    name="redis-single",
    family="redis",
    nodes=resp_nodes("redis"),
    local=resp_local("redis-server", "valkey-server"),
    compose_file="redis-single.yaml",
    image="redis",
    releases=RELEASES,
    releases_refused={},
    options=RESP_OPTIONS,
    server_args=resp_server_args,
    programs=resp_programs("redis"),
)
