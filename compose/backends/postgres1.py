"""One PostgreSQL server: advisory locks that live as long as the session that took them.

Example: ``[backend]`` with ``name = "postgres1"`` and ``options.idle_session_timeout_ms = "1000"``.

Traps: an advisory lock is in memory alone: a restart forgets all of them and keeps all tables and
sequences (so fencing tokens go on growing).  Whoever ends a session ends its locks:
``pg_terminate_backend``, ``idle_session_timeout``, a proxy in between.  The server ends a session
when the connection *closes*; a client that is paused or cut off keeps its lock, for ever if nobody
looks, since TCP keepalives are answered by the kernel, here by that of Toxiproxy.
"""

from __future__ import annotations

from compose.backends.postgres import (
    PORT,
    POSTGRES_IMAGE_ADVICE,
    POSTGRES_LOCAL,
    POSTGRES_OPTIONS,
    POSTGRES_PROGRAMS,
    postgres_server_args,
)
from compose.backends.spec import RELEASES, BackendSpec, NodeSpec

POSTGRES1 = BackendSpec(
    name="postgres1",
    family="postgres",
    nodes=(NodeSpec(name="postgres", port=PORT),),
    compose_file="postgres1.yaml",
    image="postgres",
    releases=RELEASES,
    releases_refused={},
    options=POSTGRES_OPTIONS,
    server_args=postgres_server_args,
    programs=POSTGRES_PROGRAMS,
    image_advice=POSTGRES_IMAGE_ADVICE,
    local=POSTGRES_LOCAL,
)
