"""redis-sentinel: the primary as the sentinels tell it, fail-overs, no way round the proxies."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from compose.backends.redis_sentinel import (
    IN_CONTAINERS,
    REDIS_SENTINEL,
    SENTINELS,
    SERVERS,
    ask_primary,
    configuration,
    formed,
)
from compose.docker_runtime import DockerRuntime
from compose.waiting import wait_until
from harness.core.errors import HarnessError, UserError
from harness.core.protocols import Cluster, Markable, Node
from harness.ledger import FileLedger
from tests.compose.local import cluster_up, need

NODES = [*SERVERS, *SENTINELS]
PAIRS = [f"{a}-{b}" for a in NODES for b in NODES if a != b]


# --- without a server ---------------------------------------------------------------------------


class Told:
    """A node that says what the test tells it to."""

    def __init__(self, **facts: Any) -> None:
        self._facts = facts

    def facts(self) -> dict[str, Any]:
        if not self._facts:
            raise HarnessError("does not answer")
        return self._facts


def told(*views: tuple[str, int] | None, **roles: str) -> dict[str, Any]:
    """Sentinels with (whom they name, in which epoch), None = silent; roles of the servers."""
    nodes = {name: Told(role=roles.get(name, "replica")) for name in SERVERS}
    for name, view in zip(SENTINELS, views, strict=True):
        primary, term = view or ("", 0)
        port = SERVERS.get(primary)
        nodes[name] = Told(primary=f"{primary}:{port}", term=term) if view else Told()
    return nodes


def test_an_old_primary_that_was_cut_off_has_no_say() -> None:
    nodes = told(("redis1", 0), ("redis2", 1), ("redis2", 1), redis1="primary", redis2="primary")
    assert ask_primary(nodes) == "redis2"


def test_one_sentinel_that_knows_more_than_two_is_believed() -> None:
    nodes = told(("redis1", 1), ("redis1", 1), ("redis3", 2), redis1="primary", redis3="primary")
    assert ask_primary(nodes) == "redis3"


def test_a_server_that_does_not_act_as_the_primary_is_none() -> None:
    nodes = told(("redis2", 1), ("redis2", 1), None)
    with pytest.raises(HarnessError, match="name redis2 as the primary, but it is a replica"):
        ask_primary(nodes)


def test_without_sentinels_nobody_tells() -> None:
    with pytest.raises(HarnessError, match="no sentinel tells who the primary is"):
        ask_primary(told(None, None, None, redis1="primary"))


def test_every_node_says_its_own_name_and_knows_the_others() -> None:
    options = REDIS_SENTINEL.settle({"min_replicas": "1"}, runtime="docker")
    texts = {name: configuration(name, IN_CONTAINERS, options) for name in NODES}
    for name, port in SERVERS.items():
        assert f"replica-announce-ip {name}\n" in texts[name]
        assert f"replica-announce-port {port}\n" in texts[name]
        assert ("replicaof redis1 7001" in texts[name]) == (name != "redis1")
        assert "min-replicas-to-write 1" in texts[name]
    for name in SENTINELS:
        assert f"sentinel announce-ip {name}\n" in texts[name]
        known = [
            other for other in SENTINELS if f"known-sentinel lockhavoc {other} " in texts[name]
        ]
        assert known == [other for other in SENTINELS if other != name]
    identities = [line for text in texts.values() for line in text.split("\n") if "myid" in line]
    assert len(set(identities)) == len(SENTINELS)


def test_a_bound_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match=r"options\.down_after_ms = '1'"):
        REDIS_SENTINEL.settle({"down_after_ms": "1"}, runtime="docker")


# --- with servers -------------------------------------------------------------------------------


def primary_of(cluster: Cluster) -> str:
    with suppress(HarnessError):
        return cluster.primary()
    return ""


def keys(node: Node) -> int:
    return int(node.facts()["keys"])


def check(cluster: Cluster) -> None:
    assert list(cluster.nodes) == NODES
    assert formed(cluster.nodes) == ""
    facts = {name: node.facts() for name, node in cluster.nodes.items()}
    assert [facts[name]["role"] for name in NODES] == ["primary", *["replica"] * 2, *["member"] * 3]
    assert cluster.primary() == "redis1"
    assert len({fact["run_id"] for fact in facts.values()}) == 6
    for worker in (0, 1):
        assert [end["name"] for end in cluster.endpoints(worker)] == NODES
    for link in cluster.links:
        before = {name: node.facts()["echoes"] for name, node in cluster.nodes.items()}
        assert link.probe(2000).outcome == "answered"
        after = {name: node.facts()["echoes"] for name, node in cluster.nodes.items()}
        assert {n: after[n] - before[n] for n in NODES} == {n: int(n == link.dst) for n in NODES}
    first = cluster.nodes["redis1"]
    assert isinstance(first, Markable)
    first.leave_mark("mine")
    assert wait_until(lambda: [keys(cluster.nodes[n]) for n in SERVERS] == [1, 1, 1], timeout_s=5)


def check_failover(cluster: Cluster) -> None:
    """The primary dies: a replica with its data is promoted, and the old one follows it later."""
    old = cluster.nodes["redis1"]
    old.kill()
    with pytest.raises(HarnessError):
        cluster.primary()
    assert wait_until(lambda: primary_of(cluster) in ("redis2", "redis3"), timeout_s=20)
    new = cluster.nodes[cluster.primary()]
    assert isinstance(new, Markable)
    assert new.has_mark("mine")
    assert {cluster.nodes[name].facts()["term"] for name in SENTINELS} <= {0, 1}
    old.start()
    assert old.facts()["role"] == "primary", "it thinks so until it is told"
    assert cluster.primary() == new.name
    assert wait_until(lambda: formed(cluster.nodes) == "", timeout_s=40), formed(cluster.nodes)
    assert old.facts()["role"] == "replica"


def check_marks_of_a_sentinel(cluster: Cluster) -> None:
    """What a sentinel knows is in its file: it survives a kill, and is gone with its data."""
    node = cluster.nodes["sentinel1"]
    term = node.facts()["term"]
    assert isinstance(node, Markable)
    node.leave_mark("mine")
    node.kill()
    node.start()
    assert node.has_mark("mine")
    assert node.facts()["term"] == term
    node.kill()
    node.start(wipe=True)
    assert not node.has_mark("mine")
    assert wait_until(lambda: node.facts()["term"] == term, timeout_s=20), "the others tell it"


def check_that_there_is_no_way_round(cluster: Cluster) -> None:
    """With every link between nodes cut each is alone; mended, all find each other again."""
    between = [link for link in cluster.links if link.name in PAIRS]
    assert [link.name for link in between] == PAIRS
    for link in between:
        link.set_enabled(False)

    def alone() -> bool:
        facts = {name: node.facts() for name, node in cluster.nodes.items()}
        return not any(
            facts[name]["in_sync"] or facts[name]["replicas"] for name in SERVERS
        ) and all(
            "s_down" in facts[name]["flags"] and not facts[name]["sentinels"] for name in SENTINELS
        )

    assert wait_until(alone, timeout_s=20)
    for node in cluster.nodes.values():
        assert node.probe(1000).outcome == "answered", "each lives on, alone"
    for link in between:
        link.clear()
    assert wait_until(lambda: formed(cluster.nodes) == "", timeout_s=30), formed(cluster.nodes)


@pytest.mark.live
def test_as_processes(tmp_path: Path) -> None:
    need("redis-sentinel")
    with cluster_up(tmp_path, "redis-sentinel", workers=2) as cluster:
        check(cluster)
        check_failover(cluster)
        check_marks_of_a_sentinel(cluster)
        cluster.collect_logs(tmp_path / "logs")
        logs = {path.name for path in (tmp_path / "logs").iterdir()}
        assert logs == {*(f"{name}.log" for name in NODES), "toxiproxy.log"}


@pytest.mark.live
@pytest.mark.docker
@pytest.mark.parametrize("release", REDIS_SENTINEL.releases)
def test_in_containers(tmp_path: Path, ledger: FileLedger, release: str) -> None:
    runtime = DockerRuntime()
    reason = runtime.can("redis-sentinel")
    if reason:
        pytest.skip(reason)
    cluster = runtime.up(
        "redis-sentinel", {"release": release}, workers=2, run_dir=tmp_path, ledger=ledger
    )
    try:
        check(cluster)
        if release == REDIS_SENTINEL.releases[0]:
            check_that_there_is_no_way_round(cluster)
        check_failover(cluster)
        cluster.collect_logs(tmp_path / "logs")
        logs = {path.name for path in (tmp_path / "logs").iterdir()}
        assert {f"{name}.log" for name in [*NODES, *(f"net-{n}" for n in NODES)]} < logs
    finally:
        cluster.down()
