"""What toxics really do to a Redis connection: the semantics that faults rely on."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compose.families import resp
from compose.process_runtime import ProcessCluster
from harness.core.clock import MonotonicClock, ms
from harness.core.protocols import Link
from tests.compose.local import cluster_up, need, undo_elsewhere

pytestmark = pytest.mark.live

HOUR_MS = 3_600_000
HELD = {"latency": HOUR_MS, "jitter": 0}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ProcessCluster]:
    need()
    with cluster_up(tmp_path) as running:
        yield running


@pytest.fixture
def link(cluster: ProcessCluster) -> Link:
    return cluster.links[0]


def eventually(check: Callable[[], Any], timeout_ms: int = 3000) -> None:
    clock = MonotonicClock()
    deadline = clock.now() + ms(timeout_ms)
    while not check():
        assert clock.now() < deadline, "it never came true"
        clock.sleep_until(clock.now() + ms(2))


def connect(link: Link) -> socket.socket:
    """A connection through the link that the server has answered on."""
    connection = socket.create_connection((link.host, link.port), timeout=2)
    connection.sendall(b"PING\r\n")
    assert connection.recv(100) == b"+PONG\r\n"
    return connection


def ask(cluster: ProcessCluster, *words: str) -> str:
    """Past the proxy."""
    node = next(iter(cluster._local.values()))
    return resp.ask(node.host, node.port, words)[0]


def echoes(cluster: ProcessCluster) -> int:
    return int(cluster.nodes["redis"].facts()["echoes"])


def test_a_clean_link_answers(link: Link) -> None:
    seen = link.probe(1000)
    assert seen.outcome == "answered"
    assert seen.rtt_ns is not None
    assert 0 < seen.rtt_ns < ms(1000)
    assert link.toxics() == []


def test_held_bytes_arrive_in_order_after_the_removal_and_the_connection_lives(
    cluster: ProcessCluster, link: Link
) -> None:
    with connect(link) as connection:
        link.add_toxic("latency", "upstream", HELD)
        for number in range(5):
            connection.sendall(f"RPUSH list {number}\r\n".encode())
        assert link.probe(150).outcome == "silent"
        assert ask(cluster, "LLEN", "list") == "0"
        link.remove_toxic("latency", "upstream")
        eventually(lambda: ask(cluster, "LLEN", "list") == "5")
        assert [ask(cluster, "LINDEX", "list", str(n)) for n in range(5)] == list("01234")
        answers = b""
        while answers.count(b"\r\n") < 5:
            answers += connection.recv(100)
        assert answers == b":1\r\n:2\r\n:3\r\n:4\r\n:5\r\n"


def test_bytes_of_a_client_that_gave_up_arrive_late_all_the_same(
    cluster: ProcessCluster, link: Link
) -> None:
    connection = connect(link)
    link.add_toxic("latency", "upstream", HELD)
    link.add_toxic("latency", "downstream", HELD)
    connection.sendall(b"SET late write\r\n")
    connection.close()
    assert ask(cluster, "EXISTS", "late") == "0"
    link.clear()
    eventually(lambda: ask(cluster, "EXISTS", "late") == "1")


@pytest.mark.parametrize("kind", ["latency", "bandwidth"])
@pytest.mark.parametrize("by_undo", [False, True])
def test_what_is_held_for_a_reader_that_is_gone_does_not_hang_the_removal(
    cluster: ProcessCluster, link: Link, kind: str, by_undo: bool
) -> None:
    """Toxiproxy deadlocks if such a toxic is just deleted (compose/links.py, LETS_GO)."""
    held = {"latency": HELD, "bandwidth": {"rate": 0}}[kind]
    connection = connect(link)
    connection.sendall(b"SUBSCRIBE news\r\n")
    assert b"subscribe" in connection.recv(100)
    link.add_toxic(kind, "downstream", held)
    for number in range(20):
        assert ask(cluster, "PUBLISH", "news", str(number)) == "1"
    connection.close()
    if by_undo:
        undo_elsewhere(list(link.undo()))
    else:
        link.remove_toxic(kind, "downstream")
    assert link.toxics() == []
    assert link.probe(1000).outcome == "answered"


def test_timeout_throws_bytes_away_and_its_removal_closes(
    cluster: ProcessCluster, link: Link
) -> None:
    with connect(link) as connection:
        link.add_toxic("timeout", "upstream", {"timeout": 0})
        connection.sendall(b"SET lost write\r\n")
        assert link.probe(150).outcome == "silent"
        link.remove_toxic("timeout", "upstream")
        assert connection.recv(100) == b""
    assert ask(cluster, "EXISTS", "lost") == "0"


def test_limit_data_lets_the_request_through_and_closes_instead_of_the_answer(
    cluster: ProcessCluster, link: Link
) -> None:
    with connect(link) as connection:
        link.add_toxic("limit_data", "downstream", {"bytes": 0})
        connection.sendall(b"SET done write\r\n")
        assert connection.recv(100) == b""
    assert ask(cluster, "EXISTS", "done") == "1"
    before = echoes(cluster)
    assert link.probe(500).outcome == "closed"
    assert echoes(cluster) == before + 1
    link.remove_toxic("limit_data", "downstream")
    assert link.probe(500).outcome == "answered"


def test_a_second_toxic_on_a_stream_lets_go_what_the_first_holds(
    cluster: ProcessCluster, link: Link
) -> None:
    """The trap because of which faults on one link never overlap."""
    with connect(link) as connection:
        link.add_toxic("latency", "upstream", HELD)
        connection.sendall(b"SET leaked write\r\n")
        assert link.probe(150).outcome == "silent"
        assert ask(cluster, "EXISTS", "leaked") == "0"
        link.add_toxic("bandwidth", "upstream", {"rate": 100})
        eventually(lambda: ask(cluster, "EXISTS", "leaked") == "1")


def test_a_disabled_link_closes_and_refuses_and_comes_back_at_the_same_port(link: Link) -> None:
    with connect(link) as connection:
        link.set_enabled(False)
        assert connection.recv(100) == b""
    assert link.probe(500).outcome == "refused"
    assert link.toxics() == [{"enabled": False}]
    link.set_enabled(True)
    assert link.probe(500).outcome == "answered"


def test_one_link_does_not_disturb_the_other(cluster: ProcessCluster) -> None:
    first, second = cluster.links
    first.set_enabled(False)
    second.add_toxic("latency", "downstream", {"latency": 20})
    assert first.probe(200).outcome == "refused"
    seen = second.probe(1000)
    assert seen.rtt_ns is not None
    assert seen.rtt_ns >= ms(20)


def test_undo_from_another_process_makes_the_link_clean_and_may_be_repeated(link: Link) -> None:
    steps = link.undo()
    link.add_toxic("latency", "upstream", HELD)
    link.add_toxic("limit_data", "downstream", {"bytes": 0})
    link.set_enabled(False)
    undo_elsewhere(steps)
    assert link.toxics() == []
    assert link.probe(1000).outcome == "answered"
    undo_elsewhere(steps)
    assert link.probe(1000).outcome == "answered"


def test_undo_leaves_the_link_of_another_run_alone(tmp_path: Path, link: Link) -> None:
    (tmp_path / "other").mkdir()
    with cluster_up(tmp_path / "other") as other:
        stale = [
            {**step, "url": step["url"].replace(_base(other.links[0]), _base(link))}
            for step in other.links[0].undo()
        ]
        link.set_enabled(False)
        undo_elsewhere(stale)
        assert link.toxics() == [{"enabled": False}]


def _base(link: Link) -> str:
    return str(link.undo()[0]["url"]).partition("/proxies/")[0]


def test_a_toxic_kind_that_undo_would_not_name_is_refused(link: Link) -> None:
    with pytest.raises(ValueError, match="slicer"):
        link.add_toxic("slicer", "upstream", {"average_size": 1})
    link.remove_toxic("latency", "upstream")  # not there: nothing happens
