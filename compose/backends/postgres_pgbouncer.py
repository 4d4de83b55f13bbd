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
``pg_advisory_lock`` occupies a server connection that the unlock may need.  As a local process the
pooler reaches the server without a proxy.  PgBouncer before 1.24 cannot end a single client, so
``backend-kill`` fails there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from compose.backends.postgres import (
    PORT,
    PORT_POOLER,
    POSTGRES_IMAGE,
    POSTGRES_IMAGE_ADVICE,
    POSTGRES_OPTIONS,
    POSTGRES_PROGRAMS,
    as_nobody,
    postgres_binaries,
    postgres_program,
    postgres_server_args,
)
from compose.backends.spec import (
    RELEASES,
    BackendSpec,
    Local,
    LocalPlace,
    LocalProgram,
    NodeSpec,
    Option,
)
from compose.binary import Binary
from compose.servers import ask_binary, find_server
from harness.core.errors import HarnessError

SERVER, POOLER = "postgres", "pgbouncer"
# Debian's folder of servers is not on the PATH of everybody.
_ALSO = tuple(path for path in (Path("/usr/sbin/pgbouncer"),) if path.exists())


def _compose_env(options: Mapping[str, str]) -> Mapping[str, str]:
    return {
        "LOCKHAVOC_POOL_MODE": options["pool_mode"],
        "LOCKHAVOC_POOL_SIZE": options["pool_size"],
    }


def _version(path: Path) -> str:
    said = ask_binary([str(path), "--version"])
    match = re.search(r"PgBouncer (\d[\w.]*)", said)
    if match is None:
        raise HarnessError(f"{path} is no PgBouncer: --version says {said.strip()[:200]!r}")
    return match[1]


def _find() -> Mapping[str, Binary]:
    pooler = find_server((POOLER,), wheel="", version=_version, also=_ALSO)
    return {**postgres_binaries(), POOLER: pooler}


def _program(name: str, place: LocalPlace) -> LocalProgram:
    if name == SERVER:  # it knows nothing of the pooler
        alone = msgspec.structs.replace(place, ports={SERVER: place.ports[SERVER]})
        return postgres_program(name, alone)
    pooler = place.binaries[POOLER]
    return LocalProgram(
        argv=tuple(as_nobody(["bash", str(POSTGRES_IMAGE / "lockhavoc-pgbouncer")])),
        version=pooler.version,
        env={
            "PGBOUNCER": str(pooler.path),
            "SERVER": f"127.0.0.1 {place.ports[SERVER]['client']}",
            "ADDRESS": "127.0.0.1",
            "PORT": str(place.ports[name]["client"]),
            "FOLDER": str(place.data[name] / "now"),
            "SOCKETS": "",  # its path may be longer than a socket's may be
            "POOL_MODE": place.options["pool_mode"],
            "POOL_SIZE": place.options["pool_size"],
        },
    )


POSTGRES_PGBOUNCER = BackendSpec(
    name="postgres-pgbouncer",
    family="postgres",
    nodes=(
        NodeSpec(name=SERVER, port=PORT, peer_ports=(PORT,), clients=False),
        NodeSpec(name=POOLER, port=PORT_POOLER, family="pgbouncer", data="", votes=False),
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
    programs=POSTGRES_PROGRAMS,
    image_advice=POSTGRES_IMAGE_ADVICE,
    compose_env=_compose_env,
    local=Local(
        find=_find,
        program=_program,
        says="postgres (PostgreSQL) and pgbouncer",
        by_wheel=False,
    ),
)
