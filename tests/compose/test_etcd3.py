"""etcd3: its leader found by asking, echoes that count, no way round the proxies, restarts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from compose import docker_images
from compose.backends.etcd3 import ETCD3
from compose.docker_runtime import DockerRuntime
from compose.families.etcd import EtcdFamily
from compose.waiting import wait_until
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import Cluster, Markable, Node
from harness.ledger import FileLedger
from tests.compose.local import ROOT, cluster_up, need

NODES = ["etcd1", "etcd2", "etcd3"]
PAIRS = [f"{a}-{b}" for a in NODES for b in NODES if a != b]
FAMILY = EtcdFamily()

pytestmark = pytest.mark.live


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


def check(cluster: Cluster) -> None:
    assert list(cluster.nodes) == NODES
    facts = {name: node.facts() for name, node in cluster.nodes.items()}
    roles = sorted(fact["role"] for fact in facts.values())
    assert roles == ["member", "member", "primary"]
    assert facts[cluster.primary()]["role"] == "primary"
    assert len({fact["term"] for fact in facts.values()}) == 1
    assert len({fact["run_id"] for fact in facts.values()}) == 3
    assert cluster.versions["etcd"] == facts["etcd1"]["version"]
    for link in cluster.links:
        before = {name: node.facts()["echoes"] for name, node in cluster.nodes.items()}
        assert link.probe(2000).outcome == "answered"
        after = {name: node.facts()["echoes"] for name, node in cluster.nodes.items()}
        assert {n: after[n] - before[n] for n in NODES} == {n: int(n == link.dst) for n in NODES}


def check_restart(cluster: Cluster) -> None:
    """Of the leader: another leads, its data is there again, and without data it does not start."""
    name = cluster.primary()
    node = cluster.nodes[name]
    term, born = node.facts()["term"], node.facts()["run_id"]
    assert isinstance(node, Markable)
    node.leave_mark("mine")
    others = [other for other in cluster.nodes.values() if other is not node]
    for other in others:
        assert isinstance(other, Markable)
        assert wait_until(lambda other=other: other.has_mark("mine"), timeout_s=5)
    node.kill()
    assert wait_until(lambda: has_leader(cluster) and cluster.primary() != name, timeout_s=15)
    node.start()
    assert node.has_mark("mine")
    assert node.facts()["run_id"] != born
    assert node.facts()["term"] > term
    node.kill()
    # The others expect it to know what it voted for: it must be replaced first, as the fault does.
    with pytest.raises(HarnessError, match="exit code 2"):
        node.start(wipe=True)


def check_that_there_is_no_way_round(cluster: Cluster) -> None:
    """With every link between members cut nothing goes on; mended, all do."""
    between = [link for link in cluster.links if link.name in PAIRS]
    assert [link.name for link in between] == PAIRS
    for link in between:
        link.set_enabled(False)
    assert wait_until(lambda: not has_leader(cluster), timeout_s=15)
    for node in cluster.nodes.values():
        assert node.probe(1000).outcome == "answered", "each lives on, alone"
        with pytest.raises((AnsweredError, HarnessError)):
            FAMILY.check_ready(node.host, node.port)
    for link in between:
        link.clear()
    assert wait_until(lambda: all(map(is_ready, cluster.nodes.values())), timeout_s=20)
    assert has_leader(cluster)


def test_as_processes(tmp_path: Path) -> None:
    need("etcd3")
    with cluster_up(tmp_path, "etcd3", workers=2) as cluster:
        check(cluster)
        check_restart(cluster)


def have_base(release: str) -> None:
    """Makes the base image if it is not here; skips where that cannot be done."""
    if docker_images.exists(docker_images.base_image(release)):
        return
    if os.geteuid() != 0:
        pytest.skip(f"debian:{release}-slim is not here, and making it needs root")
    script = ["sh", str(ROOT / "compose" / "engine.sh")]
    subprocess.run(script, env={**os.environ, "RELEASE": release}, check=True)


@pytest.mark.docker
@pytest.mark.parametrize("release", ETCD3.releases)
def test_in_containers(tmp_path: Path, ledger: FileLedger, release: str) -> None:
    runtime = DockerRuntime()
    reason = runtime.can("etcd3")
    if reason:
        pytest.skip(reason)
    have_base(release)
    options = {"release": release}
    cluster = runtime.up("etcd3", options, workers=2, run_dir=tmp_path, ledger=ledger)
    try:
        check(cluster)
        check_that_there_is_no_way_round(cluster)
        check_restart(cluster)
        cluster.collect_logs(tmp_path / "logs")
        logs = {path.name for path in (tmp_path / "logs").iterdir()}
        assert {f"{name}.log" for name in [*NODES, *(f"net-{n}" for n in NODES)]} < logs
    finally:
        cluster.down()
