"""The loop on a real server and redis-py's own lock, with a restart in the middle."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from clients.retry.loop import RetryLoop
from clients.retry.monitor import monitor
from clients.retry.record import JsonLines, Request, read_records, requeue
from clients.retry.replay import replay
from clients.retry.waiting import Escalated, Options, rules
from tests.clients.servers import redis_server

pytestmark = pytest.mark.live

CLIENTS, BUDGET_MS, TTL_MS = 12, 30_000, 1_000


def client_at(port: int) -> Any:
    # No retries below the loop: it is the loop that decides.
    return redis.Redis(port=port, socket_timeout=2, retry=Retry(NoBackoff(), 0))


class Contender(threading.Thread):
    """Wants the lock once, holds it for a moment."""

    enough = threading.Event()  # three had it: the restart may come

    def __init__(self, name: str, port: int, log: JsonLines, granted: list[str]) -> None:
        super().__init__(name=name, daemon=True)
        self.lock = client_at(port).lock("orders", timeout=TTL_MS / 1000)
        self.granted = granted
        options = Options(log=log, observe=lambda: {"other_waiters_exist": True})
        request = Request("orders", name, BUDGET_MS, ttl_ms=TTL_MS)
        self.loop = RetryLoop[bool](
            request,
            lambda: bool(self.lock.acquire(blocking=False)),
            release=self._leave,
            withdraw=self._leave,
            options=options,
        )

    def _leave(self, _: bool = True) -> None:
        with contextlib.suppress(RedisError):  # the restart took it
            self.lock.release()

    def run(self) -> None:
        with self.loop:
            self.granted.append(self.name)
            if len(self.granted) >= 3:
                self.enough.set()
            threading.Event().wait(0.03)


def test_nobody_is_stuck_after_a_restart(tmp_path: Path) -> None:
    log, granted = tmp_path / "retry.jsonl", list[str]()
    with redis_server(tmp_path) as server:
        contenders = [
            Contender(f"w{n}", server.port, JsonLines(log), granted) for n in range(CLIENTS)
        ]
        for contender in contenders:
            contender.start()
        assert contenders[0].enough.wait(BUDGET_MS / 1000)
        server.kill()
        server.start()
        for contender in contenders:
            contender.join(BUDGET_MS / 1000)
            assert not contender.is_alive(), f"{contender.name} is stuck"
    (lock,) = monitor(read_records(log))["locks"]
    assert lock["outcomes"]["acquired"] == CLIENTS
    assert lock["wait_ms"]["max"] <= BUDGET_MS
    again = replay(read_records(log), rules)
    assert (again["different"], again["changed"]) == (0, 0)


def test_a_budget_that_ends_leaves_a_letter_in_redis(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        client = client_at(server.port)
        client.set("orders", "somebody else")
        file = JsonLines(tmp_path / "dead.jsonl")

        def letter(record: dict[str, Any]) -> None:
            client.rpush("dead", json.dumps(record))
            file(record)

        options = Options(dead_letters=letter)
        lock = client.lock("orders", timeout=1)
        loop = RetryLoop[bool](
            Request("orders", "w1", 300), lambda: lock.acquire(blocking=False), options=options
        )
        with pytest.raises(Escalated):
            loop.run()
        (kept,) = client.lrange("dead", 0, -1)
        assert json.loads(kept)["request"]["requester_id"] == "w1"
        client.delete("orders")
        found: list[Request] = []
        assert requeue(file.path, found.append) == 1
        assert RetryLoop[bool](found[0], lambda: lock.acquire(blocking=False)).run()
