"""zookeeper3: its leader found by asking, echoes that arrive, no way round, restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from compose.backends.zookeeper3 import ZOOKEEPER3
from compose.docker_compose import FILES
from compose.docker_runtime import DockerRuntime
from compose.families.zookeeper import ZookeeperFamily
from compose.families.zookeeper_wire import Session, password_of
from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import Cluster, Markable, Node
from harness.ledger import FileLedger

NODES = ["zk1", "zk2", "zk3"]
PAIRS = [f"{a}-{b}" for a in NODES for b in NODES if a != b]
FAMILY = ZookeeperFamily()
VERSIONS = {"trixie": "3.9.", "bookworm": "3.8."}


def is_ready(node: Node) -> bool:
    try:
        FAMILY.check_ready(node.host, node.port)
    except HarnessError:
        return False
    return True


def has_leader(cluster: Cluster) -> bool:
    try:
        cluster.primary()
    except HarnessError:
        return False
    return True


def check(cluster: Cluster, release: str) -> None:
    facts = {name: node.facts() for name, node in cluster.nodes.items()}
    assert list(facts) == NODES
    assert sorted(fact["role"] for fact in facts.values()) == ["primary", "replica", "replica"]
    assert facts[cluster.primary()]["role"] == "primary"
    assert len({fact["run_id"] for fact in facts.values()}) == 3
    assert cluster.versions["zookeeper"] == facts["zk1"]["version"]
    assert cluster.versions["zookeeper"].startswith(VERSIONS[release])
    for link in cluster.links:
        before = {name: node.facts()["echoes"] for name, node in cluster.nodes.items()}
        assert link.probe(2000).outcome == "answered"
        after = {name: node.facts()["echoes"] for name, node in cluster.nodes.items()}
        assert [name for name in NODES if after[name] > before[name]] == [link.dst]


def check_sessions(cluster: Cluster) -> None:
    """The leader lists a session; taken up by what follows from its id and closed, it is gone."""
    node = cluster.nodes[cluster.primary()]
    host, port = node.host, node.port
    with Session.open(host, port, timeout_ms=5000) as session:
        identity = session.identity
        # What the list shows may be a moment old.
        assert wait_until(lambda: FAMILY.has_session(host, port, hex(identity)), timeout_s=5)
        FAMILY.end_session(host, port, hex(identity))
        assert wait_until(lambda: not FAMILY.has_session(host, port, hex(identity)), timeout_s=5)
        with Session.open(host, port, timeout_ms=5000, identity=identity) as gone:
            assert gone.identity == 0
        session.identity = 0  # nothing is left to be closed
    assert len(password_of(identity)) == 16


def check_restart(cluster: Cluster) -> None:
    """Of the leader: another leads, and what was written is there again."""
    name = cluster.primary()
    node = cluster.nodes[name]
    term, born = node.facts()["term"], node.facts()["run_id"]
    assert isinstance(node, Markable)
    node.leave_mark("mine")
    node.kill()
    assert wait_until(lambda: has_leader(cluster) and cluster.primary() != name, timeout_s=20)
    assert cluster.nodes[cluster.primary()].facts()["term"] > term
    node.start()
    assert node.has_mark("mine")
    assert node.facts()["run_id"] != born


def check_that_there_is_no_way_round(cluster: Cluster) -> None:
    """With every link between servers cut nothing goes on; mended, all do."""
    between = [link for link in cluster.links if link.name in PAIRS]
    assert [link.name for link in between] == PAIRS
    for link in between:
        link.set_enabled(False)
    assert wait_until(lambda: not any(map(is_ready, cluster.nodes.values())), timeout_s=20)
    for node in cluster.nodes.values():
        assert node.probe(2000).outcome == "answered", "each lives on, alone"
        assert node.facts()["role"] == "member"
    for link in between:
        link.clear()
    assert wait_until(lambda: all(map(is_ready, cluster.nodes.values())), timeout_s=30)
    assert has_leader(cluster)


@pytest.mark.live
@pytest.mark.docker
@pytest.mark.parametrize("release", ZOOKEEPER3.releases)
def test_in_containers(tmp_path: Path, ledger: FileLedger, release: str) -> None:
    runtime = DockerRuntime()
    reason = runtime.can("zookeeper3")
    if reason:
        pytest.skip(reason)
    options = {"release": release}
    cluster = runtime.up("zookeeper3", options, workers=2, run_dir=tmp_path, ledger=ledger)
    try:
        check(cluster, release)
        check_sessions(cluster)
        check_that_there_is_no_way_round(cluster)
        check_restart(cluster)
        cluster.collect_logs(tmp_path / "logs")
        logs = {path.name for path in (tmp_path / "logs").iterdir()}
        assert {f"{name}.log" for name in [*NODES, *(f"net-{n}" for n in NODES)]} < logs
    finally:
        cluster.down()


def test_the_compose_file_listens_where_the_spec_says() -> None:
    text = (FILES / ZOOKEEPER3.compose_file).read_text()
    for number, node in enumerate(ZOOKEEPER3.nodes, start=1):
        client, replication, election = node.peer_ports
        assert node.port == client == 2180 + number
        assert f"server.{number}={node.name}:{replication}:{election}" in text
    assert "clientPort=218$$MY_ID" in text
