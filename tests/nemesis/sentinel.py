"""What tests of faults on Redis with Sentinel share: the wait for a whole cluster."""

from __future__ import annotations

from contextlib import suppress

from compose.backends.redis_sentinel import SERVERS, formed
from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import Cluster, Commandable, Node
from tests.nemesis.conformance import START
from tests.nemesis.worlds import TestWorld, mend, straighten


def put_right(world: TestWorld) -> None:
    """Whatever a test left: links clean, servers up, all of them under one primary."""
    mend(world)
    straighten(world.cluster.nodes.values())
    for node in world.cluster.nodes.values():
        if node.name in SERVERS:
            for setting, value in START.items():
                command(node, "CONFIG", "SET", setting, value)
    assert wait_until(lambda: is_whole(world.cluster), timeout_s=30), formed(world.cluster.nodes)


def is_whole(cluster: Cluster) -> bool:
    """An old primary that is back is told at once, where the sentinels take ten seconds."""
    lack = formed(cluster.nodes)
    if lack.startswith("primaries"):
        with suppress(HarnessError):
            primary = cluster.primary()
            for name in SERVERS:
                node = cluster.nodes[name]
                if name != primary and node.facts()["role"] == "primary":
                    told = str(cluster.nodes["sentinel1"].facts()["primary"])
                    host, _, port = told.rpartition(":")
                    command(node, "REPLICAOF", host, port)
    return not lack


def command(node: Node, *words: str) -> str:
    assert isinstance(node, Commandable)
    return node.command(*words)
