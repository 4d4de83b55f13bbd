"""Simulated workers: the same requests and replies as real ones, pauses, kills, late writes."""

from __future__ import annotations

from typing import Any

import pytest

from clients.recipes.redis_lock import FencedRedisLock, RedisLock
from clients.sim.world import SimSetup, build
from harness.core.clock import NS_PER_MS, NS_PER_S, ms
from harness.core.errors import UserError
from harness.core.messages import PoolEvent, Reply, Request, WorkerPool


class Lab:
    """A world with opened workers and one call per request."""

    def __init__(self, recipe: Any = FencedRedisLock, workers: int = 2, **more: Any) -> None:
        self.setup: SimSetup = build(recipe, workers=workers, seed=3, **more)
        self.pool: WorkerPool = self.setup.pool
        self.clock = self.setup.clock
        self.ids = 0
        self.other: list[PoolEvent] = []
        for worker in range(workers):
            assert self.ask(worker, "open", options={"nodes": [], "options": {}}).type == "ok"

    def send(self, worker: int, do: str, **fields: Any) -> int:
        self.ids += 1
        self.pool.send(worker, Request(self.ids, do, **fields))
        return self.ids

    def reply(self, number: int, within_ms: float = 5_000) -> Reply:
        deadline_ns = self.clock.now() + ms(within_ms)
        while self.clock.now() < deadline_ns:
            for event in self.pool.poll(deadline_ns):
                if event.reply is not None and event.reply.id == number:
                    assert event.reply.invoke <= event.reply.complete <= event.received_ns
                    return event.reply
                self.other.append(event)
        raise AssertionError(f"no reply to request {number} within {within_ms} ms")

    def ask(self, worker: int, do: str, **fields: Any) -> Reply:
        return self.reply(self.send(worker, do, **fields))

    def acquire(self, worker: int, hold: str, timeout_ms: int = 0, ttl_ms: int = 200) -> Reply:
        return self.ask(worker, "acquire", key="k", hold=hold, ttl_ms=ttl_ms, timeout_ms=timeout_ms)

    def wait(self, span_ms: float) -> list[PoolEvent]:
        deadline_ns = self.clock.now() + ms(span_ms)
        events: list[PoolEvent] = []
        while self.clock.now() < deadline_ns:
            events += self.pool.poll(deadline_ns)
        return events


def test_hello_says_what_the_recipe_can_do() -> None:
    lab = Lab()
    hello = [event.reply for event in lab.other if event.reply and event.reply.event == "hello"]
    assert len(hello) == 2
    assert hello[0] is not None
    assert hello[0].value["lease"] == {"kind": "ttl", "ttl_ms": None}
    assert hello[0].value["powers"] == ["renew", "believes", "fenced"]


def test_acquire_renew_believe_release() -> None:
    lab = Lab()
    granted = lab.acquire(0, "0-1")
    assert granted.type == "ok"
    assert granted.value["token"] == 1
    assert len(granted.value["owner"]) == 32
    refused = lab.acquire(1, "1-1")
    assert (refused.type, refused.error) == ("fail", "busy")
    lab.wait(150)
    assert lab.ask(0, "renew", key="k", hold="0-1", ttl_ms=200).type == "ok"
    lab.wait(150)
    assert lab.ask(0, "believes", key="k", hold="0-1").value is True
    assert lab.ask(0, "release", key="k", hold="0-1").type == "ok"
    again = lab.acquire(1, "1-2")
    assert again.value["token"] == 2


def test_a_waiter_gets_in_when_the_lease_ends_and_the_old_holder_is_told() -> None:
    lab = Lab()
    start_ns = lab.acquire(0, "0-1").complete
    reply = lab.acquire(1, "1-1", timeout_ms=1000)
    assert reply.type == "ok"
    assert ms(199) < reply.complete - start_ns < ms(260)
    for do in ("release", "renew"):
        late = lab.ask(0, do, key="k", hold="0-1", ttl_ms=200)
        assert (late.type, late.error) == ("fail", "not-held")
    assert lab.ask(0, "believes", key="k", hold="0-1").value is False


def test_a_waiter_gives_up_in_time() -> None:
    lab = Lab()
    lab.acquire(0, "0-1", ttl_ms=5000)
    reply = lab.acquire(1, "1-1", timeout_ms=300)
    assert (reply.type, reply.error) == ("fail", "busy")
    assert ms(200) < reply.complete - reply.invoke <= ms(301)


@pytest.mark.parametrize(
    ("do", "fields", "says"),
    [
        ("fly", {}, "must be one of"),
        ("release", {"key": "k", "hold": "9-9"}, "has no grant"),
        ("acquire", {"hold": "0-9", "ttl_ms": 5}, "key is missing"),
        ("acquire", {"key": "k", "ttl_ms": 5}, "hold is missing"),
        ("acquire", {"key": "k", "hold": "0-9"}, "ttl_ms is missing"),
        ("write", {"key": "r"}, "named no resource"),
        ("open", {"options": {"options": {"pol_ms": 3}}}, "unknown option"),
    ],
)
def test_wrong_requests_fail_without_an_observation(
    do: str, fields: dict[str, Any], says: str
) -> None:
    reply = Lab().ask(0, do, **fields)
    assert reply.type == "fail"
    assert says in (reply.error or "")


def test_nothing_works_before_open_and_after_close() -> None:
    lab = Lab()
    lab.acquire(0, "0-1")
    assert lab.ask(0, "close").type == "ok"
    for do in ("acquire", "release"):
        reply = lab.ask(0, do, key="k", hold="0-1", ttl_ms=5)
        assert reply.type == "fail"
        assert reply.error not in ("busy", "not-held")


def test_a_paused_holder_writes_late_and_the_fence_stops_it() -> None:
    lab = Lab(resource_mode="fenced")
    assert lab.setup.resource is not None
    token = lab.acquire(0, "0-1").value["token"]
    lab.setup.workers[0].pause()
    late = lab.send(0, "write", key="r", hold="0-1", token=token, value="stale")
    newer = lab.acquire(1, "1-1", timeout_ms=1000).value["token"]
    assert lab.ask(1, "write", key="r", hold="1-1", token=newer, value="new").type == "ok"
    resumed_ns = lab.clock.now()
    lab.setup.workers[0].resume()
    reply = lab.reply(late)
    assert (reply.type, reply.error) == ("fail", "stale")
    assert reply.invoke >= resumed_ns
    assert [(r.value, r.accepted, r.why) for r in lab.setup.resource.records] == [
        ("new", True, ""),
        ("stale", False, "stale"),
    ]


def test_an_answer_that_came_during_a_pause_is_read_after_it() -> None:
    lab = Lab()
    number = lab.send(0, "acquire", key="k", hold="0-1", ttl_ms=200, timeout_ms=0)
    lab.setup.workers[0].pause()
    assert lab.wait(5_000) == [], "also the time limit of the socket passes unseen"
    lab.setup.workers[0].resume()
    reply = lab.reply(number)
    assert reply.type == "ok"
    assert reply.complete - reply.invoke >= ms(5_000)


def test_a_pause_between_the_request_and_the_resource_delays_nothing_that_is_on_its_way() -> None:
    lab = Lab(resource_mode="unfenced")
    assert lab.setup.resource is not None
    number = lab.send(0, "write", key="r", value=1)
    lab.setup.workers[0].pause()
    lab.wait(100)
    assert [record.value for record in lab.setup.resource.records] == [1]
    lab.setup.workers[0].resume()
    assert lab.reply(number).value == {"version": 1, "seq": 1}


def test_a_killed_worker_is_reported_and_its_command_still_acts() -> None:
    lab = Lab()
    lab.send(0, "acquire", key="k", hold="0-1", ttl_ms=200, timeout_ms=0)
    lab.setup.workers[0].kill()
    before = lab.setup.workers[0].status()
    (event,) = lab.wait(100)
    assert (event.worker, event.reply, event.died) == (0, None, "signal SIGKILL")
    assert lab.acquire(1, "1-1").error == "busy", "the dead worker's SET has arrived"
    lab.send(0, "acquire", key="k", hold="0-2", ttl_ms=200)
    assert lab.wait(300) == [], "a dead worker answers nothing"
    lab.pool.restart(0)
    (hello,) = lab.wait(100)
    assert hello.reply is not None
    assert hello.reply.event == "hello"
    assert lab.setup.workers[0].status().identity != before.identity
    assert lab.ask(0, "open", options={}).type == "ok"
    assert lab.acquire(0, "0-3").type == "ok"


def test_requests_wait_for_a_worker_that_is_starting() -> None:
    setup = build(RedisLock, workers=1, seed=1)
    setup.pool.send(0, Request(1, "open"))
    events = [event for _ in range(2) for event in setup.pool.poll(NS_PER_S)]
    assert [(e.reply.event, e.reply.id) for e in events if e.reply] == [("hello", 0), ("", 1)]


def test_a_lost_answer_is_unknown_and_the_session_can_be_opened_again() -> None:
    lab = Lab()
    lab.setup.cluster.worker_links[0].add_toxic("bandwidth", "downstream", {"rate": 0})
    reply = lab.acquire(0, "0-1")
    assert reply.type == "info"
    assert "timed out" in (reply.error or "")
    assert reply.complete - reply.invoke == ms(2_000)
    lab.setup.cluster.worker_links[0].clear()
    assert lab.ask(0, "open", options={}).type == "ok"
    assert lab.acquire(0, "0-2").type == "ok"


def test_a_socket_without_a_limit_waits_for_ever() -> None:
    lab = Lab()
    lab.ask(0, "open", options={"options": {"socket_timeout_ms": 0}})
    lab.setup.cluster.node.pause()
    number = lab.send(0, "acquire", key="k", hold="0-1", ttl_ms=200)
    assert lab.wait(100_000) == []
    lab.setup.cluster.node.resume()
    assert lab.reply(number).type == "ok"


def test_a_refused_connection_is_a_definite_failure_and_costs_time() -> None:
    lab = Lab()
    lab.setup.cluster.worker_links[0].set_enabled(False)
    lab.wait(1)
    reply = lab.acquire(0, "0-1")
    assert reply.type == "fail"
    assert "cannot connect" in (reply.error or "")
    assert reply.complete > reply.invoke


def test_a_refused_connection_after_a_busy_answer_is_unknown() -> None:
    lab = Lab()
    lab.acquire(1, "1-1", ttl_ms=1000)
    number = lab.send(0, "acquire", key="k", hold="0-1", ttl_ms=200, timeout_ms=800)
    lab.wait(20)
    lab.setup.cluster.worker_links[0].set_enabled(False)
    assert lab.reply(number).type == "info"


def test_an_idle_connection_that_was_closed_is_made_anew() -> None:
    lab = Lab()
    lab.acquire(0, "0-1")
    lab.setup.cluster.node.kill()
    lab.setup.cluster.node.start()
    lab.wait(1)
    assert lab.ask(0, "release", key="k", hold="0-1").type == "ok"


def test_compare_and_set_uses_the_version_that_was_read() -> None:
    lab = Lab(resource_mode="cas")
    version = lab.ask(0, "read", key="r", hold="0-1").value["version"]
    assert version == 0
    write = {"value": "a", "options": {"expect": version}}
    assert lab.ask(0, "write", key="r", hold="0-1", **write).value == {"version": 1, "seq": 1}
    stale = lab.ask(1, "write", key="r", hold="1-1", **write)
    assert (stale.type, stale.error) == ("fail", "mismatch")
    assert lab.ask(1, "write", key="r", hold="1-2", value="b").error == "no-expect"
    # The real worker remembers what it read under the same hold.
    lab.ask(1, "read", key="r", hold="1-3")
    assert lab.ask(1, "write", key="r", hold="1-3", value="c").type == "ok"


def test_poll_ends_at_its_deadline_and_at_a_wake() -> None:
    lab = Lab()
    now_ns = lab.clock.now()
    assert lab.pool.poll(now_ns + 7) == []
    assert lab.clock.now() == now_ns + 7
    lab.pool.wake()
    assert lab.pool.poll(now_ns + NS_PER_S) == []
    assert lab.clock.now() == now_ns + 7


def test_events_while_somebody_else_waits_are_kept_with_their_times() -> None:
    lab = Lab()
    number = lab.send(0, "acquire", key="k", hold="0-1", ttl_ms=200)
    start_ns = lab.clock.now()
    lab.clock.sleep_until(start_ns + 50 * NS_PER_MS)
    (event,) = lab.pool.poll(start_ns + NS_PER_S)
    assert event.reply is not None
    assert event.reply.id == number
    assert event.received_ns < start_ns + NS_PER_MS
    assert lab.clock.now() == start_ns + 50 * NS_PER_MS


def test_close_ends_all_workers_without_a_word() -> None:
    lab = Lab()
    lab.pool.close()
    assert lab.wait(100) == []
    assert {handle.status().state for handle in lab.pool.handles} == {"dead"}


def test_real_code_is_refused_with_the_names_that_can_run() -> None:
    with pytest.raises(UserError, match="recipe-redis"):
        build("redis-py", workers=1, seed=1)


def test_all_problems_of_backend_options_are_listed() -> None:
    with pytest.raises(UserError) as error:
        build(RedisLock, workers=1, seed=1, options={"persistance": "aof", "latency_us": -1})
    assert "did you mean 'persistence'" in error.value.problems[0]
    assert "latency_us: -1" in error.value.problems[1]
