"""Links do to messages what Toxiproxy does to bytes."""

from __future__ import annotations

from typing import Any

import pytest

from clients.recipes.base import NotConnected
from clients.sim.clock import SimClock
from clients.sim.cluster import SimCluster
from clients.sim.connection import SimConn, message_bytes
from clients.sim.network import SimLink
from harness.core.clock import NS_PER_MS, ms
from harness.core.errors import HarnessError
from harness.core.protocols import Direction, Link

ONE_WAY_NS = 100_000  # above the longest drawn latency


class Client:
    """Records what a connection tells its owner."""

    def __init__(self, clock: SimClock, timeout_ns: int | None = None) -> None:
        self.clock, self.timeout_ns = clock, timeout_ns
        self.seen: list[tuple[str, Any]] = []
        self.at_ns: list[int] = []

    def _note(self, what: str, value: Any) -> None:
        self.seen.append((what, value))
        self.at_ns.append(self.clock.now())

    def replied(self, conn: SimConn, reply: Any) -> None:
        self._note("reply", reply)

    def dropped(self, conn: SimConn, why: str) -> None:
        conn.close()
        self._note("dropped", why)

    def expired(self, conn: SimConn, serial: int) -> None:
        conn.close()
        self._note("expired", serial)


class World:
    def __init__(self) -> None:
        self.clock = SimClock()
        self.cluster = SimCluster(self.clock, workers=1, seed=1)
        self.link: SimLink = self.cluster.worker_links[0]
        self.node, self.store = self.cluster.node, self.cluster.store
        self.client = Client(self.clock)

    def wait(self, span_ms: float) -> None:
        self.clock.sleep_until(self.clock.now() + ms(span_ms))

    def set_owner(self, value: str) -> SimConn:
        conn = self.link.connect(self.client)
        conn.send(("SET", "k", value))
        return conn


@pytest.fixture
def world() -> World:
    return World()


def test_the_classes_are_what_the_contract_asks_for(world: World) -> None:
    link: Link = world.link
    assert world.cluster.links == [link]
    assert world.cluster.endpoints(0) == [{"name": "redis", "host": "127.0.0.1", "port": link.port}]


def test_plain_link_answers_within_two_ways(world: World) -> None:
    probe = world.link.probe(10)
    assert probe.outcome == "answered"
    assert probe.rtt_ns is not None
    assert 60_000 <= probe.rtt_ns <= 2 * ONE_WAY_NS
    assert world.clock.now() == probe.rtt_ns


@pytest.mark.parametrize("direction", ["upstream", "downstream"])
def test_latency_delays_and_its_removal_lets_go(world: World, direction: Direction) -> None:
    world.link.add_toxic("latency", direction, {"latency": 50})
    probe = world.link.probe(200)
    assert probe.rtt_ns is not None
    assert ms(50) < probe.rtt_ns < ms(50) + 2 * ONE_WAY_NS
    world.link.remove_toxic("latency", direction)
    world.link.add_toxic("latency", direction, {"latency": 3_600_000})
    world.set_owner("a")
    world.wait(100)
    assert world.client.seen == []
    world.link.clear()
    world.wait(1)
    assert world.client.seen == [("reply", True)]


def test_jam_keeps_commands_in_order_also_of_clients_that_gave_up(world: World) -> None:
    world.link.add_toxic("bandwidth", "upstream", {"rate": 0})
    conn = world.set_owner("a")
    conn.send(("SET", "k", "b"))
    conn.send(("SET", "k", "c"))
    conn.close()
    assert world.store.commands == 0
    assert world.link.probe(250).outcome == "silent"
    world.link.clear()
    world.wait(1)
    assert world.store.commands == 4  # three SETs and the echo of the probe
    assert world.store.execute(("GET", "k")) == "c"
    assert not world.link.conns, "nothing is followed once it is delivered"


def test_a_rate_spends_time_on_bytes(world: World) -> None:
    world.link.add_toxic("bandwidth", "upstream", {"rate": 1})
    command = ("SET", "k", "x" * 500)
    world.link.connect(world.client).send(command)
    world.wait(message_bytes(command) - 1)
    assert world.store.commands == 0
    world.wait(2)
    assert world.store.commands == 1


def test_timeout_throws_away_and_closes_when_removed(world: World) -> None:
    world.link.add_toxic("timeout", "upstream", {"timeout": 0})
    world.set_owner("a")
    world.wait(10_000)
    assert world.client.seen == []
    world.link.clear()
    world.wait(1)
    assert [what for what, _ in world.client.seen] == ["dropped"]
    assert world.store.commands == 0


def test_timeout_on_the_way_back_lets_the_command_act(world: World) -> None:
    world.link.add_toxic("timeout", "downstream", {"timeout": 0})
    world.set_owner("a")
    world.wait(10)
    assert (world.store.commands, world.client.seen) == (1, [])


def test_timeout_with_a_time_closes_by_itself(world: World) -> None:
    world.link.add_toxic("timeout", "downstream", {"timeout": 30})
    world.set_owner("a")
    world.wait(29)
    assert world.client.seen == []
    world.wait(5)
    assert [what for what, _ in world.client.seen] == ["dropped"]


def test_limit_data_closes_after_so_many_bytes(world: World) -> None:
    size = message_bytes(("SET", "k", "a"))
    world.link.add_toxic("limit_data", "upstream", {"bytes": 2 * size - 1})
    conn = world.set_owner("a")
    world.wait(1)
    assert world.client.seen == [("reply", True)]
    conn.send(("SET", "k", "b"))
    world.wait(1)
    assert world.client.seen[-1][0] == "dropped"
    assert world.store.execute(("GET", "k")) == "a"


def test_limit_data_lets_an_exact_fit_through_first(world: World) -> None:
    world.link.add_toxic("limit_data", "upstream", {"bytes": message_bytes(("SET", "k", "a"))})
    world.set_owner("a")
    world.wait(1)
    assert world.client.seen[-1][0] == "dropped"


def test_reset_peer_swallows_and_closes(world: World) -> None:
    world.link.add_toxic("reset_peer", "upstream", {"timeout": 20})
    world.set_owner("a")
    world.wait(19)
    assert world.client.seen == []
    world.wait(2)
    assert world.client.seen[0][0] == "dropped"
    assert world.store.commands == 0


def test_sever_drops_open_connections_and_refuses_new_ones(world: World) -> None:
    world.link.add_toxic("bandwidth", "upstream", {"rate": 0})
    world.set_owner("late")
    world.link.set_enabled(False)
    world.wait(1)
    assert world.client.seen[0][0] == "dropped"
    with pytest.raises(NotConnected):
        world.link.connect(world.client)
    assert world.link.probe(10).outcome == "refused"
    assert world.link.toxics()[0] == {"enabled": False}
    world.link.clear()
    world.wait(10)
    assert world.store.commands == 0, "what a severed link held is lost"
    assert world.link.probe(10).outcome == "answered"


def test_slow_close_delays_only_the_end(world: World) -> None:
    world.link.add_toxic("slow_close", "downstream", {"delay": 40})
    world.set_owner("a")
    world.wait(1)
    assert world.client.seen == [("reply", True)]
    world.node.kill()
    world.wait(39)
    assert len(world.client.seen) == 1
    world.wait(2)
    assert world.client.seen[1][0] == "dropped"


def test_a_dead_server_closes_through_the_proxy_and_refuses_directly(world: World) -> None:
    world.node.kill()
    assert world.link.probe(10).outcome == "closed"
    assert world.node.probe(10).outcome == "refused"


def test_a_paused_server_answers_late_and_in_order(world: World) -> None:
    world.node.pause()
    for value in "ab":
        world.set_owner(value)
        world.wait(1)
    assert world.link.probe(250).outcome == "silent"
    assert world.node.status().state == "paused"
    world.node.resume()
    world.wait(1)
    assert world.store.execute(("GET", "k")) == "b"
    assert [what for what, _ in world.client.seen] == ["reply", "reply"]


def test_a_kill_loses_what_waited_and_a_start_takes_time(world: World) -> None:
    world.store.execute(("SET", "kept", "1"))
    before = world.node.status().identity
    world.node.leave_mark("m")
    world.node.pause()
    world.set_owner("lost")
    world.wait(1)
    world.node.kill()
    with pytest.raises(HarnessError, match="does not answer"):
        world.node.facts()
    started_ns = world.clock.now()
    world.node.start()
    assert world.clock.now() > started_ns
    assert world.node.status().identity != before
    assert world.node.has_mark("m")
    assert world.node.facts()["persistent"] is True
    assert world.store.keys() == ["kept", "m"]
    world.node.kill()
    world.node.start(wipe=True)
    assert world.store.keys() == []


def test_without_persistence_a_kill_forgets() -> None:
    cluster = SimCluster(SimClock(), workers=1, seed=1, options={"persistence": "none"})
    cluster.store.execute(("SET", "k", "a"))
    cluster.node.kill()
    cluster.node.start()
    assert cluster.store.keys() == []


def test_a_client_gives_up_after_its_time_limit(world: World) -> None:
    world.client.timeout_ns = 100 * NS_PER_MS
    world.node.pause()
    world.set_owner("a")
    world.wait(99)
    assert world.client.seen == []
    world.wait(2)
    assert world.client.seen == [("expired", 1)]
    world.node.resume()
    world.wait(1)
    assert world.store.execute(("GET", "k")) == "a", "the command acts all the same"
    assert len(world.client.seen) == 1


@pytest.mark.parametrize(
    ("kind", "direction", "attributes", "says"),
    [
        ("slicer", "upstream", {}, "not simulated"),
        ("latency", "sideways", {}, "neither stream"),
        ("latency", "upstream", {"delay": 5}, "no attribute 'delay'"),
    ],
)
def test_what_is_not_simulated_is_refused(
    world: World, kind: str, direction: Any, attributes: dict[str, int], says: str
) -> None:
    with pytest.raises(HarnessError, match=says):
        world.link.add_toxic(kind, direction, attributes)


def test_a_toxic_can_be_there_once_per_direction(world: World) -> None:
    world.link.add_toxic("latency", "upstream", {"latency": 5})
    world.link.add_toxic("latency", "downstream", {"latency": 5})
    with pytest.raises(HarnessError, match="already has"):
        world.link.add_toxic("latency", "upstream", {"latency": 5})
    assert [toxic["name"] for toxic in world.link.toxics()] == [
        "latency_upstream",
        "latency_downstream",
    ]
