"""Five independent servers: each worker has a way of its own to each; none is the primary."""

from __future__ import annotations

from pathlib import Path

import pytest

from compose.docker_runtime import DockerRuntime
from compose.registry import BACKENDS
from harness.core.errors import HarnessError
from harness.core.protocols import Cluster, Markable
from harness.ledger import FileLedger
from tests.compose.local import cluster_up, need

NODES = [f"redis{number}" for number in range(1, 6)]

pytestmark = pytest.mark.live


def check(cluster: Cluster, *, persistent: bool) -> None:
    assert list(cluster.nodes) == NODES
    assert len({node.facts()["run_id"] for node in cluster.nodes.values()}) == 5
    assert {node.facts()["persistent"] for node in cluster.nodes.values()} == {persistent}
    assert [link.name for link in cluster.links] == [f"w{w}-{n}" for w in (0, 1) for n in NODES]
    assert len({link.port for link in cluster.links}) == 10
    for worker in (0, 1):
        assert [end["name"] for end in cluster.endpoints(worker)] == NODES
    with pytest.raises(HarnessError, match="there is no primary: its five servers"):
        cluster.primary()
    # What is written through a link arrives at its server and at no other.
    for link in cluster.links:
        assert link.probe(2000).outcome == "answered"
        before = {name: node.facts()["echoes"] for name, node in cluster.nodes.items()}
        link.probe(2000)
        after = {name: node.facts()["echoes"] for name, node in cluster.nodes.items()}
        assert {n: after[n] - before[n] for n in NODES} == {n: int(n == link.dst) for n in NODES}
    first = cluster.nodes["redis1"]
    assert isinstance(first, Markable)
    first.leave_mark("mine")
    keys = {name: node.facts()["keys"] for name, node in cluster.nodes.items()}
    assert keys == {name: int(name == "redis1") for name in NODES}, "nothing is replicated"


def check_restart_of_three(cluster: Cluster, *, kept: bool) -> None:
    three = [cluster.nodes[name] for name in NODES[1:4]]
    for node in three:
        assert isinstance(node, Markable)
        node.leave_mark("mine")
        node.kill()
    for node in three:
        node.start()
        assert node.facts()["keys"] == int(kept)


@pytest.mark.parametrize("persistence", ["aof", "none"])
def test_as_processes(tmp_path: Path, persistence: str) -> None:
    need("redlock5")
    with cluster_up(tmp_path, "redlock5", workers=2, persistence=persistence) as cluster:
        check(cluster, persistent=persistence == "aof")
        check_restart_of_three(cluster, kept=persistence == "aof")
        cluster.collect_logs(tmp_path / "logs")
        logs = {path.name for path in (tmp_path / "logs").iterdir()}
        assert logs == {*(f"{name}.log" for name in NODES), "toxiproxy.log"}


@pytest.mark.docker
@pytest.mark.parametrize("persistence", ["aof", "none"])
def test_in_containers(tmp_path: Path, ledger: FileLedger, persistence: str) -> None:
    reason = DockerRuntime().can("redlock5")
    if reason:
        pytest.skip(reason)
    options = {"persistence": persistence}
    cluster = DockerRuntime().up("redlock5", options, workers=2, run_dir=tmp_path, ledger=ledger)
    try:
        check(cluster, persistent=persistence == "aof")
        check_restart_of_three(cluster, kept=persistence == "aof")
        cluster.collect_logs(tmp_path / "logs")
        assert {f"{name}.log" for name in NODES} < {p.name for p in (tmp_path / "logs").iterdir()}
    finally:
        cluster.down()


def test_the_spec_says_why_there_is_no_primary() -> None:
    assert BACKENDS.load("redlock5").no_primary
    assert not BACKENDS.load("redis-single").no_primary
