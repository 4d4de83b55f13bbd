"""Redis with Sentinel: a primary, two replicas, and three sentinels that promote one of them.

Example: ``[backend]`` with ``name = "redis-sentinel"`` and ``options.min_replicas = "1"``.

Clients ask a sentinel who the primary is and go there.  Replication is asynchronous: a grant that
no replica has seen is lost when its primary is replaced, and a primary that was cut off from the
sentinels goes on granting to whoever can still reach it, next to the new one.  ``min_replicas``
makes such a primary refuse writes after a second or two; it does not bring back what is lost.

Every server says its own *name* as its address (``replica-announce-ip``, ``sentinel
announce-ip``), and what a name means differs from node to node: to all others it is a proxy.  So
all agree on addresses, and none can be reached past its proxy.  Ports differ between nodes for
the same reason.  Local processes have no proxies between them and announce 127.0.0.1.

Traps.  A sentinel that stood still, or whose clock jumped, for more than two seconds trusts
nothing it knows and takes part in no fail-over for half a minute (TILT).  Servers and sentinels
write what a fail-over changes into their configuration.  A server keeps it when its data are
removed: a primary comes back empty *as the primary*, and its replicas copy the empty store.  An
old primary that comes back thinks that it still is one, until a sentinel tells it otherwise, some
ten seconds later.  A fail-over that came to nothing is tried again after twice
``failover_timeout_ms`` only.  Who is primary is told by the sentinel with the highest epoch.
A ``minority`` or ``majority`` of the nodes is one of sentinels, since theirs decides who is
primary; name servers (``node:redis2``), or join them: ``primary+minority``.
Reference: Redis documentation, "High availability with Redis Sentinel" and "Replication".
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from compose.backends.resp import RESP_OPTIONS, resp_binaries, resp_programs
from compose.backends.spec import (
    RELEASES,
    BackendSpec,
    Local,
    LocalPlace,
    LocalProgram,
    NodeSpec,
    Option,
)
from compose.families.sentinel import SERVICE
from compose.primary import facts_of
from harness.core.errors import HarnessError
from harness.core.protocols import Node

SERVERS = {"redis1": 7001, "redis2": 7002, "redis3": 7003}
SENTINELS = {"sentinel1": 26001, "sentinel2": 26002, "sentinel3": 26003}
FIRST, QUORUM = "redis1", 2
_REPLICA_LAG_S = 1  # replicas report once a second: the shortest lag that can be asked for

Addresses = Mapping[str, tuple[str, int]]  # node -> host and port by which the others know it

IN_CONTAINERS: Addresses = {name: (name, port) for name, port in (SERVERS | SENTINELS).items()}


def configuration(name: str, at: Addresses, options: Mapping[str, str]) -> str:
    """The file with which a node starts for the first time; it writes its own state into it."""
    host, port = at[name]
    settings = _server(name, at, options) if name in SERVERS else _sentinel(name, at, options)
    announce = "replica-announce" if name in SERVERS else "sentinel announce"
    lines = [f"port {port}", f"{announce}-ip {host}", f"{announce}-port {port}", *settings]
    return "\n".join(lines)


def _server(name: str, at: Addresses, options: Mapping[str, str]) -> list[str]:
    lines = ['save ""', "appendfsync no"]  # as in resp.py, and for its reasons
    lines += [f"appendonly {'yes' if options['persistence'] == 'aof' else 'no'}"]
    lines += ["repl-diskless-sync-delay 0"]  # the default waits 5 s for replicas that may come
    lines += [f"min-replicas-to-write {options['min_replicas']}"]
    lines += [f"min-replicas-max-lag {_REPLICA_LAG_S}"]
    if name != FIRST:
        lines.append("replicaof {} {}".format(*at[FIRST]))
    return lines


def _sentinel(name: str, at: Addresses, options: Mapping[str, str]) -> list[str]:
    """All others are named: sentinels ask for replicas every ten seconds only, which is long."""
    first = "{} {}".format(*at[FIRST])
    lines = ["sentinel resolve-hostnames yes", "sentinel announce-hostnames yes"]
    lines += [f"sentinel myid {_identity(name)}"]
    lines += [f"sentinel monitor {SERVICE} {first} {QUORUM}"]
    lines += [f"sentinel down-after-milliseconds {SERVICE} {options['down_after_ms']}"]
    lines += [f"sentinel failover-timeout {SERVICE} {options['failover_timeout_ms']}"]
    lines += [f"sentinel parallel-syncs {SERVICE} {len(SERVERS) - 1}"]
    for other in SERVERS:
        if other != FIRST:
            lines.append(f"sentinel known-replica {SERVICE} " + "{} {}".format(*at[other]))
    for other in SENTINELS:
        if other != name:
            where = "{} {}".format(*at[other])
            lines.append(f"sentinel known-sentinel {SERVICE} {where} {_identity(other)}")
    return lines


def _identity(sentinel: str) -> str:
    return f"{SENTINELS[sentinel]:040d}"


def _compose_env(options: Mapping[str, str]) -> Mapping[str, str]:
    return {
        f"LOCKHAVOC_CONF_{name.upper()}": configuration(name, IN_CONTAINERS, options)
        for name in IN_CONTAINERS
    }


def _program(name: str, place: LocalPlace) -> LocalProgram:
    server, folder = place.binaries["server"], place.data[name]
    # A sentinel's file is its data; that of a server stays when its data are removed.
    file = folder / "server.conf" if name in SENTINELS else folder.with_suffix(".conf")
    at = {node: ("127.0.0.1", ports["client"]) for node, ports in place.ports.items()}
    lines = [configuration(name, at, place.options), "bind 127.0.0.1", f"dir {folder}"]
    return LocalProgram(
        argv=(
            *(str(server.path), str(file), "--daemonize", "no", "--set-proc-title", "no"),
            *(() if name in SERVERS else ("--sentinel",)),
        ),
        version=server.version,
        files={"first.conf": "\n".join([*lines, ""])},
        prepare=(("sh", "-c", 'test -e "$0" || cp first.conf "$0"', str(file)),),
    )


def formed(nodes: Mapping[str, Node]) -> str:
    """ "" if the cluster is whole: one primary, replicas in sync, sentinels that see them all."""
    try:
        facts = {name: node.facts() for name, node in nodes.items()}
    except HarnessError as error:
        return str(error)
    primaries = [name for name in SERVERS if facts[name]["role"] == "primary"]
    if len(primaries) != 1:
        return f"primaries: {', '.join(primaries) or 'none'}"
    for name in SERVERS:
        if name not in primaries and not facts[name]["in_sync"]:
            return f"{name}: is not in sync with its primary"
    if facts[primaries[0]]["replicas"] != len(SERVERS) - 1:
        return f"{primaries[0]}: has {facts[primaries[0]]['replicas']} replicas in sync"
    for name in SENTINELS:
        told = facts[name]
        seen = [told["flags"], told["replicas"], told["sentinels"], told["quorum"]]
        if seen != ["master", len(SERVERS) - 1, len(SENTINELS) - 1, True]:
            return (
                f"{name}: finds the primary {told['flags']!r}, and sees {told['replicas']} replicas"
                f" and {told['sentinels']} other sentinels"
            )
        if _named(told, nodes) != primaries[0]:
            return f"{name}: takes {told['primary']} for the primary"
    return ""


def ask_primary(nodes: Mapping[str, Node]) -> str:
    """The primary as the sentinels tell it; of several answers the one of the highest epoch.

    An epoch is given to one fail-over by a majority of the sentinels, so the highest that any of
    them knows is the last word, and an old primary that was cut off has no say.
    HarnessError if no sentinel answers, or if the server they name does not act as the primary.
    """
    told: list[tuple[int, str]] = []
    silent = []
    for name, facts in facts_of({name: nodes[name] for name in SENTINELS}).items():
        if isinstance(facts, HarnessError):
            silent.append(f"{name}: {facts}")
            continue
        told.append((int(facts["term"]), _named(facts, nodes)))
    if not told:
        raise HarnessError(f"no sentinel tells who the primary is ({'; '.join(silent)})")
    _, primary = max(told)
    role = nodes[primary].facts()["role"]
    if role != "primary":
        raise HarnessError(f"the sentinels name {primary} as the primary, but it is a {role}")
    return primary


def _named(facts: Mapping[str, object], nodes: Mapping[str, Node]) -> str:
    """Which node an address of the sentinels' means: a name, or a port of this machine."""
    host, _, port = str(facts["primary"]).rpartition(":")
    if host in nodes:
        return host
    for name, node in nodes.items():
        if str(getattr(node, "port", "")) == port:
            return name
    raise HarnessError(f"the sentinels name {host}:{port}, which is no node of this cluster")


REDIS_SENTINEL = BackendSpec(
    name="redis-sentinel",
    family="redis",
    nodes=(
        *(
            NodeSpec(
                name=name, port=port, peer_ports=(port,), family="redis-replicated", votes=False
            )
            for name, port in SERVERS.items()
        ),
        *(
            NodeSpec(name=name, port=port, peer_ports=(port,), family="sentinel")
            for name, port in SENTINELS.items()
        ),
    ),
    local=Local(
        find=functools.partial(resp_binaries, "redis-server", "valkey-server"),
        program=_program,
        says="redis-server or valkey-server",
    ),
    compose_file="redis-sentinel.yaml",
    image="redis",
    releases=RELEASES,
    releases_refused={},
    options=RESP_OPTIONS
    | {
        "min_replicas": Option(
            default="0",
            choices=("0", "1", "2"),
            says="replicas that must have reported within a second, else writes are refused",
        ),
        "down_after_ms": Option(
            default="1000",
            choices=("500", "1000", "2000", "5000", "10000"),
            says="a server that is silent for so long is down to a sentinel",
        ),
        "failover_timeout_ms": Option(
            default="3000",
            choices=("1000", "3000", "10000", "60000"),
            says="bound of a fail-over; the next try comes after twice as long",
        ),
    },
    compose_env=_compose_env,
    formed=formed,
    ask_primary=ask_primary,
    programs=resp_programs("redis"),
)
