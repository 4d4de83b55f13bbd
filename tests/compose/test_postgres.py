"""PostgreSQL in containers: roles found by asking, no way round the proxies, restarts, pooling."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compose.backends.postgres_ha import POSTGRES_HA
from compose.docker_runtime import DockerRuntime
from compose.families import pgwire
from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import Cluster, Link, Markable, Promotable
from harness.ledger import FileLedger

pytestmark = [pytest.mark.live, pytest.mark.docker]

START_S_MAX = 120  # 5 to 8 s on an idle machine with images built


def up(backend: str, folder: Path, ledger: FileLedger, **options: str) -> Cluster:
    runtime = DockerRuntime()
    reason = runtime.can(backend)
    if reason:
        pytest.skip(reason)
    return runtime.up(backend, options, workers=2, run_dir=folder, ledger=ledger)


def facts(cluster: Cluster) -> dict[str, Mapping[str, Any]]:
    return {name: node.facts() for name, node in cluster.nodes.items()}


def streams(cluster: Cluster) -> bool:
    try:
        return all(fact["streaming"] == 1 for fact in facts(cluster).values())
    except HarnessError:
        return False


def named(cluster: Cluster, name: str) -> Link:
    return next(link for link in cluster.links if link.name == name)


def check_echoes(cluster: Cluster, count: dict[str, tuple[str, ...]]) -> None:
    """Each link's echo arrives at its server (and at those behind it), and at no other."""
    for link in cluster.links:
        before = facts(cluster)
        assert link.probe(2000).outcome == "answered"
        reached = count[link.dst]

        def arrived(reached: tuple[str, ...] = reached, before: Any = before) -> bool:
            after = facts(cluster)
            moved = {n for n in after if after[n]["echoes"] > before[n]["echoes"]}
            return moved == set(reached)

        assert wait_until(arrived, timeout_s=5), link.name


def check_no_way_round(cluster: Cluster) -> None:
    """With the links between the servers cut the standby follows nobody; mended, it does."""
    between = [link for link in cluster.links if not link.src.startswith("w")]
    assert [link.name for link in between] == ["postgres1-postgres2", "postgres2-postgres1"]
    for link in between:
        link.set_enabled(False)
    assert wait_until(
        lambda: all(fact["streaming"] == 0 for fact in facts(cluster).values()), timeout_s=15
    )
    known = facts(cluster)["postgres2"]["lsn"]
    primary: Any = cluster.nodes["postgres1"]
    pgwire.ask(primary.host, primary.port, "CREATE TABLE written_alone ()")
    assert facts(cluster)["postgres1"]["lsn"] > known
    assert facts(cluster)["postgres2"]["lsn"] == known
    for link in between:
        link.clear()
    assert wait_until(
        lambda: streams(cluster) and facts(cluster)["postgres2"]["lsn"] > known, timeout_s=20
    )


def check_restarts(cluster: Cluster) -> None:
    """A primary comes back as one if nobody was promoted, and as a standby if somebody was."""
    one, two = cluster.nodes["postgres1"], cluster.nodes["postgres2"]
    assert isinstance(one, Markable)
    born = one.facts()["run_id"]
    one.leave_mark("lockhavoc:mine")
    one.kill()
    one.start()
    assert one.facts()["role"] == "primary"
    assert one.facts()["run_id"] != born
    assert one.has_mark("lockhavoc:mine")
    assert isinstance(two, Promotable)
    two.promote()
    assert {fact["role"] for fact in facts(cluster).values()} == {"primary"}
    assert cluster.primary() == "postgres2", "the one of the higher timeline"
    one.kill()
    one.start()
    assert one.facts()["role"] == "replica"
    assert wait_until(lambda: streams(cluster), timeout_s=20)
    assert not one.has_mark("lockhavoc:mine"), "it was made anew from the other"
    two.kill()
    two.start(wipe=True)
    assert facts(cluster)["postgres1"]["role"] == "primary", "who has no data lets the other lead"
    assert cluster.primary() == "postgres1"


@pytest.mark.parametrize("release", POSTGRES_HA.releases)
def test_a_primary_and_a_standby(tmp_path: Path, ledger: FileLedger, release: str) -> None:
    started = time.monotonic()
    cluster = up("postgres-ha", tmp_path, ledger, release=release)
    try:
        assert time.monotonic() - started < START_S_MAX
        roles = {name: fact["role"] for name, fact in facts(cluster).items()}
        assert roles == {"postgres1": "primary", "postgres2": "replica"}
        assert streams(cluster), "formed before the first operation"
        assert cluster.primary() == "postgres1"
        major = {"trixie": "17.", "bookworm": "15."}[release]
        assert cluster.versions["postgresql"].startswith(major)
        check_echoes(cluster, {name: (name,) for name in roles})
        check_no_way_round(cluster)
        check_restarts(cluster)
        cluster.collect_logs(tmp_path / "logs")
        logs = {path.name for path in (tmp_path / "logs").iterdir()}
        assert {"postgres1.log", "postgres2.log", "net-postgres1.log"} < logs
    finally:
        cluster.down()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler(tmp_path: Path, ledger: FileLedger, mode: str) -> None:
    started = time.monotonic()
    cluster = up("postgres-pgbouncer", tmp_path, ledger, pool_mode=mode, pool_size="2")
    try:
        assert time.monotonic() - started < START_S_MAX
        assert cluster.primary() == "postgres"
        assert [link.name for link in cluster.links] == [
            *("w0-pgbouncer", "w1-pgbouncer"),
            "pgbouncer-postgres",
        ]
        check_echoes(cluster, dict.fromkeys(cluster.nodes, ("postgres", "pgbouncer")))
        pooler: Any = cluster.nodes["pgbouncer"]
        rows = pgwire.table(pooler.host, pooler.port, "SHOW CONFIG", database="pgbouncer")
        config = {row["key"]: row["value"] for row in rows}
        assert (config["pool_mode"], config["default_pool_size"]) == (mode, "2")
        way = named(cluster, "pgbouncer-postgres")
        way.set_enabled(False)
        assert named(cluster, "w0-pgbouncer").probe(500).outcome != "answered"
        assert cluster.nodes["postgres"].probe(1000).outcome == "answered"
        way.clear()
        assert wait_until(
            lambda: named(cluster, "w0-pgbouncer").probe(1000).outcome == "answered", timeout_s=20
        )
    finally:
        cluster.down()
