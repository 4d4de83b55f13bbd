"""Three ZooKeeper servers: one quorum, clients on any of them, each server cut off by itself.

Example: ``[backend]`` with ``name = "zookeeper3"``; ``options.tick_ms = "500"`` is the default.

A lock here is an ephemeral node: it lives as long as its client's *session*, which the servers end
when they have heard nothing for the time that client and server agreed on.  The tick is a quarter
of ZooKeeper's own default, so that sessions of a second or two can be had: the servers grant none
shorter than two ticks.

Traps.  A session ends up to one tick late.  Only the leader counts, by its monotonic clock; a new
leader gives every session its whole time again, so after an election a dead holder's lock is free
later than its time says: late, never early.  The transaction log is written but not synced: a
*killed process* loses nothing by that, a machine that loses power might, and that is no fault we
have.  Between servers there are three ports: for clients, which servers do not dial but always
listen on, so that the echoes of a link go there; for replication, where only the leader listens;
and for elections.  Faults treat all three alike.
Reference: ZooKeeper Administrator's Guide, "Configuration Parameters".
"""

from __future__ import annotations

from collections.abc import Mapping

from compose.backends.spec import RELEASES, BackendSpec, NodeSpec, Option, image_option
from compose.backends.zookeeper_local import ZOOKEEPER_LOCAL

# Also in the Compose file; a unit test compares the two.
_PORTS = {"zk1": (2181, 2881, 3881), "zk2": (2182, 2882, 3882), "zk3": (2183, 2883, 3883)}


def _compose_env(options: Mapping[str, str]) -> Mapping[str, str]:
    return {"LOCKHAVOC_TICK_MS": options["tick_ms"]}


ZOOKEEPER3 = BackendSpec(
    name="zookeeper3",
    family="zookeeper",
    nodes=tuple(
        NodeSpec(name=name, port=ports[0], peer_ports=ports) for name, ports in _PORTS.items()
    ),
    local=ZOOKEEPER_LOCAL,
    compose_file="zookeeper3.yaml",
    image="zookeeper",
    releases=RELEASES,
    releases_refused={},
    options={
        "tick_ms": Option(
            default="500",
            choices=("250", "500", "1000", "2000"),
            says="ZooKeeper's unit of time in ms; the shortest session is two of it",
        ),
        "release": Option(
            default="trixie",
            choices=RELEASES,
            runtimes=("docker",),
            env="RELEASE",
            says="Debian release that the image is built from: trixie has 3.9, bookworm 3.8",
        ),
        "image": image_option("zookeeper"),
    },
    programs=(("java", "-version"), ("bash", "--version")),
    compose_env=_compose_env,
)
