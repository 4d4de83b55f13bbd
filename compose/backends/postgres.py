"""What the backends of PostgreSQL share: options and arguments of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compose.backends.spec import RELEASES, Option

PORT, PORT_STANDBY, PORT_POOLER = 5432, 5433, 6432

POSTGRES_OPTIONS = {
    "idle_session_timeout_ms": Option(
        default="0",
        says="ends sessions that say nothing for so long, 0: never; a holder at work says nothing",
    ),
    "release": Option(
        default="trixie",
        choices=RELEASES,
        runtimes=("docker",),
        env="RELEASE",
        says="Debian release that the image is built from: trixie has PostgreSQL 17, bookworm 15",
    ),
    "image": Option(
        default="",
        runtimes=("docker",),
        says="another image for the servers, made like compose/images/postgres",
    ),
}

LOCAL_REFUSED = (
    "PostgreSQL runs under no root, whose runs these often are, and its data folder is made from a "
    "template of the image"
)


def postgres_server_args(options: Mapping[str, str]) -> Sequence[str]:
    """Arguments of the server for the settled ``options``; no address, no port."""
    settings = {
        # A killed *process* has handed its log to the kernel at each commit, so nothing that was
        # acknowledged is lost without fsync; only a machine that loses power would lose it.
        "fsync": "off",
        "jit": "off",  # a thread and 100 MB for questions that take a millisecond
        "shared_buffers": "32MB",
        "max_connections": "300",  # workers and their sessions of unknown fate
        "wal_keep_size": "256MB",  # a standby that was cut off for a while may come back
        "track_functions": "pl",  # counts echoes on a standby
        "idle_session_timeout": options["idle_session_timeout_ms"],
        "log_line_prefix": "%m [%p] %a ",
        "timezone": "UTC",
        "unix_socket_directories": "/tmp",  # noqa: S108 - in the server's container
    }
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
