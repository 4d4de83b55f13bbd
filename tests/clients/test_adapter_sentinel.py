"""The Sentinel adapters on a real primary with replicas and sentinels, also through fail-overs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clients.libraries import Library
from clients.sentinel_libraries import (
    REDIS_PY_SENTINEL,
    REDIS_PY_SENTINEL_EPOCH,
    REDIS_PY_SENTINEL_FENCED,
)
from compose.backends.redis_sentinel import SERVERS, formed
from compose.process_runtime import ProcessCluster
from compose.waiting import wait_until
from harness.core.errors import HarnessError
from harness.core.protocols import Commandable, Node, Promotable, Sessional
from tests.clients.workers import WorkerUnderTest, worker
from tests.compose.local import cluster_up, need

pytestmark = pytest.mark.live

LIBRARIES = [REDIS_PY_SENTINEL, REDIS_PY_SENTINEL_FENCED, REDIS_PY_SENTINEL_EPOCH]
each = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
TTL_MS = 60_000
PER_EPOCH = 1_000_000_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    pytest.importorskip("redis", reason="the redis package is not in this environment")
    need("redis-sentinel")
    with cluster_up(tmp_path_factory.mktemp("sentinel"), "redis-sentinel", workers=2) as made:
        yield made


@contextlib.contextmanager
def client_of(
    library: Library, cluster: ProcessCluster, directory: Path, index: int = 0, **options: Any
) -> Iterator[WorkerUnderTest]:
    with worker(library.command(sys.executable), directory) as client:
        nodes = [dict(node) for node in cluster.endpoints(index)]
        opened = client.open(nodes=nodes, options=options)
        assert opened.type == "ok", opened
        yield client


def acquire(client: WorkerUnderTest, key: str, hold: str, ttl_ms: int = TTL_MS) -> Any:
    return client.ask("acquire", key=key, hold=hold, ttl_ms=ttl_ms, timeout_ms=0)


def tell(node: Node, *words: str) -> str:
    assert isinstance(node, Commandable)
    return node.command(*words)


def primary_of(cluster: ProcessCluster) -> Node:
    return cluster.nodes[cluster.primary()]


def replicas_of(cluster: ProcessCluster) -> Sequence[Node]:
    return [cluster.nodes[name] for name in SERVERS if name != cluster.primary()]


def fail_over(cluster: ProcessCluster) -> None:
    """A commanded one; the old primary lives on and is told at once."""
    old, sentinel = primary_of(cluster), cluster.nodes["sentinel1"]
    assert isinstance(sentinel, Promotable)
    sentinel.promote()
    host, _, port = str(sentinel.facts()["primary"]).rpartition(":")
    tell(old, "REPLICAOF", host, port)
    assert wait_until(lambda: not formed(cluster.nodes), timeout_s=30), formed(cluster.nodes)


@each
def test_the_worker_is_what_the_registry_says(
    cluster: ProcessCluster, tmp_path: Path, library: Library
) -> None:
    with client_of(library, cluster, tmp_path) as one, client_of(library, cluster, tmp_path) as two:
        assert one.hello["powers"] == list(library.powers)
        assert one.hello["library"] == library.name
        key = f"rules-{library.name}"
        got = acquire(one, key, "1")
        assert got.type == "ok"
        assert isinstance(got.value["token"], int if library.fencing else type(None))
        assert got.value["nodes"] == [cluster.primary()]
        assert acquire(two, key, "2").error == "busy"
        assert one.ask("believes", key=key, hold="1").value is True
        assert one.ask("renew", key=key, hold="1", ttl_ms=TTL_MS).type == "ok"
        assert one.ask("release", key=key, hold="1").type == "ok"
        assert acquire(two, key, "3").type == "ok"
        assert one.ask("release", key=key, hold="1").type == "fail"
        assert two.ask("close").type == "ok"
        assert acquire(one, key, "4").error == "busy", "its lease alone ends a lock"


@each
def test_a_lease_ends_and_the_former_holder_is_told(
    cluster: ProcessCluster, tmp_path: Path, library: Library
) -> None:
    with client_of(library, cluster, tmp_path) as one, client_of(library, cluster, tmp_path) as two:
        key = f"lease-{library.name}"
        first = acquire(one, key, "1", ttl_ms=200)
        taken = two.ask("acquire", key=key, hold="2", ttl_ms=TTL_MS, timeout_ms=20_000)
        assert taken.type == "ok"
        if library.fencing:
            assert taken.value["token"] > first.value["token"]
        assert one.ask("believes", key=key, hold="1").value is False
        assert one.ask("renew", key=key, hold="1", ttl_ms=TTL_MS).error == "not-held"
        assert one.ask("release", key=key, hold="1").error == "not-held"


def test_every_connection_bears_the_name_of_its_link(
    cluster: ProcessCluster, tmp_path: Path
) -> None:
    with client_of(REDIS_PY_SENTINEL, cluster, tmp_path, index=1) as client:
        assert acquire(client, "named", "1").type == "ok"
        links = {link.dst: link for link in cluster.links if link.src == "w1"}
        found = {}
        for name, link in links.items():
            node = cluster.nodes[name]
            assert isinstance(node, Sessional)
            found[name] = len(node.sessions(link))
        assert found[cluster.primary()] == 1
        assert sum(found[name] for name in SERVERS) == 1
        assert sum(found.values()) == 2, "one sentinel was asked, and it knew"
        primary = primary_of(cluster)
        assert isinstance(primary, Sessional)
        (connection,) = primary.sessions(links[primary.name])
        for _ in range(3):
            assert client.ask("believes", key="named", hold="1").value is True
        assert primary.sessions(links[primary.name]) == [connection], "it is used again"


@pytest.mark.parametrize(
    ("options", "says"),
    [({"no_such": 1}, "no_such"), ({"node": "redis1"}, "node"), ({"wait_replicas": -1}, "wait_re")],
)
def test_options_that_are_none_are_refused(
    cluster: ProcessCluster, tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with worker(REDIS_PY_SENTINEL.command(sys.executable), tmp_path) as client:
        nodes = [dict(node) for node in cluster.endpoints(0)]
        reply = client.open(nodes=nodes, options=options)
        assert reply.type == "fail"
        assert says in (reply.error or "")


def test_without_sentinels_it_is_refused(cluster: ProcessCluster, tmp_path: Path) -> None:
    with worker(REDIS_PY_SENTINEL.command(sys.executable), tmp_path) as client:
        nodes = [dict(node) for node in cluster.endpoints(0) if node["name"] in SERVERS]
        reply = client.open(nodes=nodes)
        assert reply.type == "fail"
        assert "no node is called sentinelN" in (reply.error or "")


def test_a_primary_that_takes_no_writes_is_a_definite_failure(
    cluster: ProcessCluster, tmp_path: Path
) -> None:
    primary = primary_of(cluster)
    with client_of(REDIS_PY_SENTINEL_FENCED, cluster, tmp_path) as client:
        assert acquire(client, "few", "1").type == "ok"
        tell(primary, "CONFIG", "SET", "min-replicas-to-write", "3")
        try:
            # The library forgets its lock before the release is sent, so that comes last.
            for do in ("renew", "release"):
                refused = client.ask(do, key="few", hold="1", ttl_ms=TTL_MS)
                assert refused.type == "fail"
                assert "NOREPLICAS" in (refused.error or "")
            refused = acquire(client, "fewer", "2")
            assert refused.type == "fail"
            assert "NOREPLICAS" in (refused.error or "")
        finally:
            tell(primary, "CONFIG", "SET", "min-replicas-to-write", "0")


@pytest.mark.parametrize("library", [REDIS_PY_SENTINEL, REDIS_PY_SENTINEL_FENCED])
def test_a_grant_that_too_few_replicas_have_is_given_back(
    cluster: ProcessCluster, tmp_path: Path, library: Library
) -> None:
    away, key = replicas_of(cluster)[0], f"waited-{library.name}"
    options = {"wait_replicas": 2, "wait_timeout_ms": 100}
    with client_of(library, cluster, tmp_path, **options) as client:
        assert acquire(client, key, "1").type == "ok"
        assert client.ask("release", key=key, hold="1").type == "ok"
        away.pause()
        try:
            assert acquire(client, key, "2").error == "busy"
            assert tell(primary_of(cluster), "EXISTS", key) == "0"
        finally:
            away.resume()
        assert wait_until(lambda: acquire(client, key, "3").type == "ok", timeout_s=20)


@each
def test_after_a_failover_the_new_primary_is_found_and_tokens_grow(
    cluster: ProcessCluster, tmp_path: Path, library: Library
) -> None:
    key = f"failover-{library.name}"
    with client_of(library, cluster, tmp_path) as client:
        first = acquire(client, key, "1")
        assert first.type == "ok"
        assert client.ask("release", key=key, hold="1").type == "ok"
        old, epoch = cluster.primary(), cluster.nodes["sentinel1"].facts()["term"]
        fail_over(cluster)
        # The old primary answers that it is a replica now, so nothing was written.
        demoted = acquire(client, key, "2")
        if demoted.type != "ok":
            assert demoted.type == "fail", demoted
            demoted = acquire(client, key, "3")
        assert demoted.type == "ok", demoted
        assert demoted.value["nodes"] == [cluster.primary()] != [old]
        if library.fencing:
            assert demoted.value["token"] > first.value["token"]
        if library is REDIS_PY_SENTINEL_EPOCH:
            assert first.value["token"] // PER_EPOCH == epoch
            assert demoted.value["token"] // PER_EPOCH == epoch + 1


def test_a_counter_is_repeated_by_a_replica_that_was_behind_and_an_epoch_is_not(
    cluster: ProcessCluster, tmp_path: Path
) -> None:
    counted, ordered = REDIS_PY_SENTINEL_FENCED, REDIS_PY_SENTINEL_EPOCH
    with (
        client_of(counted, cluster, tmp_path) as one,
        client_of(ordered, cluster, tmp_path) as two,
    ):
        assert acquire(one, "behind", "0").type == acquire(two, "ordered", "0").type == "ok"
        assert one.ask("release", key="behind", hold="0").type == "ok"
        assert two.ask("release", key="ordered", hold="0").type == "ok"
        old = primary_of(cluster)
        # Nothing that the primary writes from now on reaches a replica, also not late.
        for replica in replicas_of(cluster):
            replica.pause()
        tell(old, "CLIENT", "KILL", "TYPE", "replica")
        before = acquire(one, "behind", "1"), acquire(two, "ordered", "1")
        old.kill()
        for node in cluster.nodes.values():
            if node.status().state == "paused":
                node.resume()
        assert wait_until(lambda: _primary(cluster) not in ("", old.name), timeout_s=30)
        after = token_now(one, "behind"), token_now(two, "ordered")
        old.start()
    assert [before[0].type, before[1].type] == ["ok", "ok"]
    assert after[0] <= before[0].value["token"], "the counter is behind, too"
    assert after[1] > before[1].value["token"]


def token_now(client: WorkerUnderTest, key: str) -> int:
    """Of a grant by whoever is the primary; the first tries find the old one gone."""
    replies: list[Any] = []

    def granted() -> bool:
        replies.append(acquire(client, key, f"try-{len(replies)}"))
        return bool(replies[-1].type == "ok")

    assert wait_until(granted, timeout_s=20)
    return int(replies[-1].value["token"])


def _primary(cluster: ProcessCluster) -> str:
    with contextlib.suppress(HarnessError):
        return cluster.primary()
    return ""
