"""The live pool with real worker processes and a tiny adapter; no lock server is needed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.libraries import WORKER
from harness.core.errors import HarnessError
from harness.core.messages import PoolEvent, Request
from harness.workers import ProcessPool
from tests.harness.adapters import MEMORY_ADAPTER


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[ProcessPool]:
    adapter = tmp_path / "memory_adapter.py"
    adapter.write_text(MEMORY_ADAPTER)
    argv = [sys.executable, "-u", str(WORKER), "--adapter", str(adapter)]
    pool = ProcessPool(argv, workers=2, log_dir=tmp_path / "workers", mark="test-workers")
    yield pool
    pool.close()


def take(pool: ProcessPool, count: int, timeout_s: float = 20.0) -> list[PoolEvent]:
    deadline_ns = time.monotonic_ns() + int(timeout_s * 1e9)
    events: list[PoolEvent] = []
    while len(events) < count:
        assert time.monotonic_ns() < deadline_ns, f"only {events}"
        events += pool.poll(deadline_ns)
    return events


def opened(pool: ProcessPool) -> None:
    hellos = take(pool, 2)
    assert {e.reply.event for e in hellos if e.reply} == {"hello"}
    for worker in range(2):
        pool.send(worker, Request(1, "open", options={"nodes": [], "options": {}}))
    assert {e.reply.type for e in take(pool, 2) if e.reply} == {"ok"}


def test_requests_are_answered_with_the_workers_own_stamps(pool: ProcessPool) -> None:
    opened(pool)
    sent_ns = time.monotonic_ns()
    pool.send(0, Request(2, "acquire", "k", "h", ttl_ms=1000, timeout_ms=0))
    (event,) = take(pool, 1)
    assert event.reply is not None
    assert (event.worker, event.reply.id, event.reply.type) == (0, 2, "ok")
    assert sent_ns <= event.reply.invoke <= event.reply.complete <= event.received_ns


def test_a_stopped_worker_answers_after_it_was_resumed(pool: ProcessPool) -> None:
    opened(pool)
    worker = pool.handles[0]
    worker.pause()
    deadline = time.monotonic() + 5
    while worker.status().state != "paused":
        assert time.monotonic() < deadline
    pool.send(0, Request(2, "acquire", "k", "h", ttl_ms=1000, timeout_ms=0))
    assert pool.poll(time.monotonic_ns() + 100_000_000) == []
    resumed_ns = time.monotonic_ns()
    worker.resume()
    (event,) = take(pool, 1)
    assert event.reply is not None
    assert event.reply.invoke >= resumed_ns, "the operation really began late"


def test_a_killed_worker_is_news_and_can_be_started_anew(pool: ProcessPool) -> None:
    opened(pool)
    before = pool.handles[1].status()
    pool.handles[1].kill()
    (event,) = take(pool, 1)
    assert (event.worker, event.reply) == (1, None)
    assert "SIGKILL" in event.died
    assert pool.handles[1].status().state == "dead"
    pool.handles[1].start()
    hello = take(pool, 1)[0]
    assert hello.reply is not None
    assert hello.reply.event == "hello"
    assert pool.handles[1].status().identity != before.identity
    pool.send(1, Request(5, "open", options={"nodes": [], "options": {}}))
    assert take(pool, 1)[0].worker == 1


def test_poll_can_be_woken_from_another_thread(pool: ProcessPool) -> None:
    opened(pool)
    threading.Timer(0.05, pool.wake).start()
    began = time.monotonic()
    assert pool.poll(time.monotonic_ns() + 20_000_000_000) == []
    assert time.monotonic() - began < 10


def test_close_also_ends_a_stopped_worker(tmp_path: Path) -> None:
    adapter = tmp_path / "memory_adapter.py"
    adapter.write_text(MEMORY_ADAPTER)
    argv = [sys.executable, "-u", str(WORKER), "--adapter", str(adapter)]
    pool = ProcessPool(argv, workers=1, log_dir=tmp_path / "workers", mark="test-workers")
    take(pool, 1)
    pool.handles[0].pause()
    pool.close()
    assert pool.handles[0].status().state == "dead"


def test_a_worker_that_prints_something_else_is_named(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "print('hello there')"]
    pool = ProcessPool(argv, workers=1, log_dir=tmp_path / "workers", mark="test-workers")
    try:
        with pytest.raises(HarnessError, match="w0: not a line of the protocol"):
            take(pool, 1)
    finally:
        pool.close()


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="/nowhere/python cannot be started"):
        ProcessPool(["/nowhere/python"], workers=1, log_dir=tmp_path / "workers", mark="x")
