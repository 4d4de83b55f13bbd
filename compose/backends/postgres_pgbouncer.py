"""PgBouncer before one PostgreSQL server, as most deployments have it.

Example: ``[backend]`` with ``name = "postgres-pgbouncer"`` and
``options.pool_mode = "transaction"``.

With ``session`` a client keeps one server connection until it leaves, and PgBouncer then says
DISCARD ALL, which gives its advisory locks back.  With ``transaction`` each statement may go to
another server connection: a lock is taken in one and given back in another (where it is not held,
so the first keeps it for ever), and two clients that are served by the same connection both get it,
since advisory locks are re-entrant in a session.

Traps: clients reach the pooler alone, so faults on links meet the way to it; the way from the
pooler to the server is a link of its own.  A pooler has no data; its restart ends all sessions.
A small ``pool_size`` makes clients wait for each other, holders for waiters too: a waiter in
``pg_advisory_lock`` occupies a server connection that the unlock may need.
"""

from __future__ import annotations

from collections.abc import Mapping

from compose.backends.postgres import (
    PORT,
    PORT_POOLER,
    POSTGRES_OPTIONS,
    postgres_server_args,
)
from compose.backends.spec import RELEASES, BackendSpec, NodeSpec, Option


def _compose_env(options: Mapping[str, str]) -> Mapping[str, str]:
    return {
        "LOCKHAVOC_POOL_MODE": options["pool_mode"],
        "LOCKHAVOC_POOL_SIZE": options["pool_size"],
    }


POSTGRES_PGBOUNCER = BackendSpec(
    name="postgres-pgbouncer",
    family="postgres",
    nodes=(
        NodeSpec(name="postgres", port=PORT, peer_ports=(PORT,), clients=False),
        NodeSpec(name="pgbouncer", port=PORT_POOLER, family="pgbouncer", data=""),
    ),
    compose_file="postgres-pgbouncer.yaml",
    image="postgres",
    releases=RELEASES,
    releases_refused={},
    options=POSTGRES_OPTIONS
    | {
        "pool_mode": Option(
            default="session",
            choices=("session", "transaction"),
            says="when a server connection goes back to the pool: when its client leaves, or after "
            "each transaction",
        ),
        "pool_size": Option(
            default="20",
            choices=("1", "2", "5", "20"),
            says="server connections that the clients share",
        ),
    },
    server_args=postgres_server_args,
    compose_env=_compose_env,
    local_refused="no wheel brings PgBouncer; use docker",
)
