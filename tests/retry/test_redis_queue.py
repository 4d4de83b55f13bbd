"""The queued lock on a real server: order, word of the release, ghosts, lost answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from clients.retry.libraries import RefusedAttempt
from clients.retry.monitor import monitor
from clients.retry.redis_link import Redis
from clients.retry.redis_queue import QueuedLock
from clients.retry.waiting import Escalated, Options
from tests.clients.servers import RedisServer, redis_server
from tests.retry.test_sinks import until, url_of

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def redis(server: RedisServer) -> Iterator[Redis]:
    with Redis(url_of(server)) as link:
        link.call("FLUSHALL")
        yield link


def lock(redis: Redis, owner: str, ttl_ms: int = 60_000, patience_ms: int = 5_000) -> QueuedLock:
    return QueuedLock(redis, "orders", ttl_ms, owner=owner, patience_ms=patience_ms)


def test_first_come_first_served_and_nobody_else(redis: Redis) -> None:
    a, b, c = (lock(redis, name) for name in "abc")
    assert (a.attempt(), b.attempt(), c.attempt()) == ("a", None, None)
    assert c.observe()["queue_position"] == 2
    assert b.observe()["current_holder_id"] == "a"
    assert a.release()
    assert c.attempt() is None, "it is not its turn"
    assert (b.notice(1), c.notice(0.01)) == (True, False)
    assert b.attempt() == "b"
    assert b.attempt() == "b", "an attempt may be repeated"
    assert b.held()
    assert b.renew(60_000)
    assert b.release()
    assert not b.renew(60_000)
    assert not b.release()
    assert c.attempt() == "c"


def test_no_ghosts(redis: Redis) -> None:
    a, b, c = lock(redis, "a"), lock(redis, "b", patience_ms=50), lock(redis, "c")
    assert (a.attempt(), b.attempt(), c.attempt()) == ("a", None, None)
    a.release()
    until(lambda: c.attempt() == "c")  # b has not asked for longer than its patience
    assert c.release()
    d = lock(redis, "d")
    assert d.withdraw()
    assert d.attempt() is None, "an attempt that comes after the withdrawal takes nothing"
    assert redis.call("GET", "orders") is None
    leftover = redis.call("KEYS", "*")
    assert all(redis.call("PTTL", key) > 0 for key in leftover), "all that is left goes by itself"


def test_a_loop_waits_for_word_and_not_for_its_time(redis: Redis, server: RedisServer) -> None:
    a = lock(redis, "a")
    assert a.attempt()
    log: list[dict[str, object]] = []
    with Redis(url_of(server)) as own:
        b = QueuedLock(own, "orders", 60_000, owner="b")
        granted: list[float] = []

        def use() -> None:
            with b.loop(30_000, Options(log=log.append)):
                granted.append(time.monotonic())

        thread = threading.Thread(target=use)
        thread.start()
        until(lambda: redis.call("ZCARD", "{orders}:queue") == 1)
        released = time.monotonic()
        a.release()
        thread.join(10)
        # Without word the loop would have come after 2.5 s.
        assert 0 <= granted[0] - released < 1
    assert [r["kind"] for r in log] == ["decision", "outcome"]
    (seen,) = monitor(log)["locks"]
    assert seen["attempts_per_grant"] == 2


def test_a_server_that_refuses_to_give_word_ends_no_loop(redis: Redis) -> None:
    a, b = lock(redis, "a"), lock(redis, "b")
    assert a.attempt()
    redis.call("SET", "{orders}:word:b", "no list", "PX", 60_000)
    with pytest.raises(RefusedAttempt, match="WRONGTYPE"):
        b.notice(0.1)
    with pytest.raises(Escalated):
        b.loop(300).run()  # it goes on to the end of its budget


def test_who_gives_up_has_left_the_queue(redis: Redis) -> None:
    assert lock(redis, "a").attempt()
    with pytest.raises(Escalated):
        lock(redis, "b").loop(200).run()
    assert redis.call("ZCARD", "{orders}:queue") == 0


def test_a_server_away_is_waited_for(redis: Redis, server: RedisServer) -> None:
    a = lock(redis, "a")
    assert a.attempt()
    server.kill()
    b = lock(redis, "b")
    back = threading.Timer(0.2, server.start)
    back.start()
    assert b.loop(20_000).run() == "b"
    back.join()
    assert b.unanswered > 0
