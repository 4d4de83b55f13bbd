"""The loops, on a virtual clock: budgets, cancellation, halts, dead letters, records."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis.exceptions
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.environments import ensure
from clients.registry import LIBRARIES
from clients.retry.libraries import RefusedAttempt, failure_of
from clients.retry.loop import AsyncRetryLoop, RetryLoop
from clients.retry.record import JsonLines, Request, read_records, requeue
from clients.retry.waiting import Abandoned, Cancelled, Escalated, Options
from harness.core.clock import NS_PER_S, VirtualClock
from harness.core.errors import UserError
from tests.live.command import ROOT


class Bench:
    """A virtual clock with the sleep that goes with it, and records in memory."""

    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock()
        self.slept_s: list[float] = []
        self.log: list[dict[str, Any]] = []
        self.letters: list[dict[str, Any]] = []
        self.options = Options(
            clock=self.clock, log=self.log.append, dead_letters=self.letters.append, **options
        )

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.clock.sleep_until(self.clock.now() + round(seconds * NS_PER_S))

    async def async_sleep(self, seconds: float) -> None:
        self.sleep(seconds)


def request(**changes: Any) -> Request:
    wanted: dict[str, Any] = {"lock_name": "orders", "requester_id": "w1", "budget_ms": 5_000}
    return Request(**(wanted | changes))


def free_from(bench: Bench, second: float) -> Callable[[], str | None]:
    return lambda: "grant" if bench.clock.now() >= second * NS_PER_S else None


def test_retries_until_it_is_granted_and_releases() -> None:
    bench = Bench()
    released: list[str] = []
    acquire = free_from(bench, 1.0)
    loop = RetryLoop(
        request(), acquire, release=released.append, options=bench.options, sleep=bench.sleep
    )
    with loop as grant:
        assert (grant, released) == ("grant", [])
    assert released == ["grant"]
    assert bench.log[-1]["outcome"] == "acquired"
    assert bench.log[-1]["attempts"] == len(bench.slept_s) + 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("budget_ms", [10, 60, 500, 5_000])
def test_no_wait_passes_the_budget(seed: int, budget_ms: int) -> None:
    bench, gone = Bench(), []
    loop = RetryLoop[str](
        request(budget_ms=budget_ms, seed=seed),
        lambda: None,
        withdraw=lambda: gone.append(1),
        options=bench.options,
        sleep=bench.sleep,
    )
    with pytest.raises(Escalated):
        loop.run()
    assert bench.clock.now() <= budget_ms * 1_000_000
    assert all(seconds >= 0.05 for seconds in bench.slept_s)
    assert gone == [1]
    assert [letter["outcome"] for letter in bench.letters] == ["escalated"]
    assert bench.log[-1]["outcome"] == "escalated"


def test_a_failure_that_waiting_does_not_cure() -> None:
    bench = Bench()

    def acquire() -> None:
        raise redis.exceptions.NoPermissionError("NOPERM no")

    with pytest.raises(Abandoned, match="does not cure"):
        RetryLoop(request(), acquire, options=bench.options, sleep=bench.sleep).run()
    assert bench.slept_s == []


def test_a_fault_of_the_program_is_not_retried() -> None:
    bench, gone = Bench(), []

    def acquire() -> None:
        raise TypeError("bug")

    loop = RetryLoop[str](
        request(), acquire, withdraw=lambda: gone.append(1), options=bench.options
    )
    with pytest.raises(TypeError):
        loop.run()
    assert (gone, bench.log) == ([1], [])


def test_cancel_withdraws() -> None:
    bench, gone = Bench(), []
    loop: RetryLoop[str]

    def acquire() -> None:
        loop.cancel()

    loop = RetryLoop(
        request(), acquire, withdraw=lambda: gone.append(1), options=bench.options,
        sleep=bench.sleep,
    )  # fmt: skip
    with pytest.raises(Cancelled):
        loop.run()
    assert gone == [1]
    assert bench.log[-1]["outcome"] == "cancelled"


def test_all_clients_of_a_deadlock_are_halted_until_it_is_resolved() -> None:
    bench = Bench(observe=lambda: {"current_holder_id": "w2", "wait_for": [["w2", "w1"]]})
    tried: list[str] = []

    def attempt(name: str) -> RetryLoop[bool]:
        def acquire() -> None:
            tried.append(name)

        wanted = request(requester_id=name)
        return RetryLoop(wanted, acquire, options=bench.options, sleep=bench.sleep)

    for name in ("w1", "w2"):
        with pytest.raises(Escalated):
            attempt(name).run()
    assert tried == ["w1"], "w2 was halted before its first attempt"
    bench.options.halts.resolve()
    with pytest.raises(Escalated):
        attempt("w2").run()
    assert tried[:2] == ["w1", "w2"]


def test_a_sink_that_fails_decides_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def full(_: dict[str, Any]) -> None:
        raise OSError(28, "No space left on device")

    bench = Bench()
    bench.options.log = full
    loop = RetryLoop(request(), free_from(bench, 1), options=bench.options, sleep=bench.sleep)
    assert loop.run() == "grant"
    assert "No space left" in caplog.text


def hears(bench: Bench, second: float) -> Callable[[float], bool]:
    """Word comes at this second."""

    def notice(most_s: float) -> bool:
        wait_s = max(0.0, second - bench.clock.now() / NS_PER_S)
        bench.sleep(min(most_s, wait_s))
        return wait_s <= most_s

    return notice


def tries_of(bench: Bench) -> list[float]:
    return [r["at_ns"] / NS_PER_S for r in bench.log if r["kind"] == "decision"]


@pytest.mark.parametrize(("word_s", "granted_s"), [(0.2, 0.2), (0.01, 0.05)])
def test_word_of_the_release_ends_a_sleep_but_not_before_the_floor(
    word_s: float, granted_s: float
) -> None:
    bench = Bench(observe=lambda: {"queue_position": 9, "fairness_policy": "fifo"})
    loop = RetryLoop(
        request(), free_from(bench, word_s), options=bench.options, sleep=bench.sleep,
        notice=hears(bench, word_s),
    )  # fmt: skip
    assert loop.run() == "grant"
    assert bench.clock.now() / NS_PER_S == pytest.approx(granted_s)


def test_who_is_told_asks_less_by_itself_and_relies_on_no_word() -> None:
    seen = {"queue_position": 1, "other_waiters_exist": 3, "fairness_policy": "fifo"}
    seen |= {"lock_ttl_seconds": 2, "holder_acquired_ago_seconds": 0.1}
    tries = []
    for told in (False, True):
        bench = Bench(observe=lambda told=told: seen | {"release_notice": told})

        def never(most_s: float, bench: Bench = bench) -> bool:
            bench.sleep(most_s)
            return False

        loop = RetryLoop(
            request(), free_from(bench, 1), options=bench.options, sleep=bench.sleep, notice=never
        )
        assert loop.run() == "grant"
        tries.append(len(tries_of(bench)))
    assert tries[1] == 1 < tries[0]


def test_word_that_cannot_come_leaves_the_decision_as_it_stands() -> None:
    bench = Bench()

    def broken(_: float) -> bool:
        raise ConnectionResetError(104, "reset")

    loop = RetryLoop(
        request(), free_from(bench, 1), options=bench.options, sleep=bench.sleep, notice=broken
    )
    assert loop.run() == "grant"
    assert [r["kind"] for r in bench.log][-1] == "outcome"


def test_asyncio_hears_too() -> None:
    bench = Bench(observe=lambda: {"queue_position": 9, "fairness_policy": "fifo"})
    ready, heard = free_from(bench, 0.2), hears(bench, 0.2)

    async def acquire() -> str | None:
        return ready()

    async def notice(most_s: float) -> bool:
        return heard(most_s)

    loop = AsyncRetryLoop(
        request(), acquire, options=bench.options, sleep=bench.async_sleep, notice=notice
    )
    assert asyncio.run(loop.run()) == "grant"
    assert bench.clock.now() / NS_PER_S == pytest.approx(0.2)


def test_asyncio_acquires_and_releases() -> None:
    bench = Bench()
    released: list[str] = []
    ready = free_from(bench, 1)

    async def acquire() -> str | None:
        return ready()

    async def release(grant: str) -> None:
        released.append(grant)

    async def use() -> None:
        loop = AsyncRetryLoop(
            request(), acquire, release=release, options=bench.options, sleep=bench.async_sleep
        )
        async with loop as grant:
            assert grant == "grant"

    asyncio.run(use())
    assert released == ["grant"]


@pytest.mark.parametrize("where", ["attempt", "sleep"])
def test_asyncio_cancellation_leaves_no_ghost(where: str) -> None:
    bench, gone = Bench(), []

    async def use() -> None:
        reached = asyncio.Event()

        async def forever(*_: float) -> None:
            reached.set()
            await asyncio.Event().wait()

        async def refused() -> None:
            return None

        async def withdraw() -> None:
            gone.append(where)

        loop = AsyncRetryLoop[str](
            request(), forever if where == "attempt" else refused, withdraw=withdraw,
            options=bench.options, sleep=forever,
        )  # fmt: skip
        task = asyncio.create_task(loop.run())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(use())
    assert gone == [where]
    assert bench.log[-1]["outcome"] == "cancelled"


def test_dead_letters_go_back_into_the_queue(tmp_path: Path) -> None:
    file = tmp_path / "dead.jsonl"
    bench = Bench()
    bench.options.dead_letters = JsonLines(file)
    for name in ("a", "b"):
        wanted = request(lock_name=name, constraints=("Must not exceed 1 retries",))
        with pytest.raises(Escalated):
            RetryLoop(wanted, lambda: None, options=bench.options, sleep=bench.sleep).run()
    given: list[Request] = []

    def fail(_: Request) -> None:
        raise RuntimeError("queue is away")

    with pytest.raises(RuntimeError):
        requeue(file, fail)
    assert len(read_records(file)) == 2, "a queue that is away costs no letter"
    assert requeue(file, given.append, "b") == 1
    assert given == [request(lock_name="b", constraints=("Must not exceed 1 retries",))]
    assert [record["request"]["lock_name"] for record in read_records(file)] == ["a"]


def test_a_torn_last_line_is_left_out_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text('{"kind":"outcome"}\n{"kind":"outc')
    assert len(read_records(file)) == 1
    file.write_text('{"kind":"outc\n{"kind":"outcome"}\n')
    with pytest.raises(UserError, match=r"log\.jsonl:1"):
        read_records(file)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (redis.exceptions.LockError("Unable to acquire lock"), "held"),
        (redis.exceptions.LockNotOwnedError("x"), "lease expired"),
        (redis.exceptions.TimeoutError("Timeout reading from socket"), "outcome unknown"),
        (redis.exceptions.ConnectionError("Error 111 connecting"), "connection refused"),
        (redis.exceptions.AuthenticationError("WRONGPASS"), "permission denied"),
        (ConnectionRefusedError(111, "Connection refused"), "connection refused"),
        (ConnectionResetError(104, "reset"), "outcome unknown"),
        (TimeoutError(), "outcome unknown"),
        (RefusedAttempt("no leader", 14), "no leader"),
    ],
)
def test_exceptions_of_libraries(error: Exception, says: str) -> None:
    found = failure_of(error)
    assert found is not None
    assert found.reason.startswith((says, f"lock is {says}"))


def test_exceptions_that_are_no_refusals() -> None:
    assert failure_of(ValueError("x")) is None


# Library as it is registered, its exception, and what the loop makes of it.
FOREIGN = [
    ("python-redis-lock", "redis_lock", "NotAcquired", "lease expired"),
    ("python-redis-lock", "redis_lock", "AlreadyAcquired", "outcome unknown"),
    ("python-etcd3", "etcd3.exceptions", "ConnectionFailedError", "outcome unknown"),
    ("python-etcd3", "etcd3.exceptions", "PreconditionFailedError", "lock is held"),
    ("kazoo", "kazoo.exceptions", "LockTimeout", "lock is held"),
    ("kazoo", "kazoo.exceptions", "NoAuthError", "permission denied"),
    ("kazoo", "kazoo.exceptions", "SessionExpiredError", "lease expired"),
    ("psycopg", "psycopg.errors", "LockNotAvailable", "lock is held"),
    ("psycopg", "psycopg.errors", "DeadlockDetected", "deadlock detected"),
    ("psycopg", "psycopg", "OperationalError", "outcome unknown"),
    ("tooz-redis", "tooz.coordination", "LockAcquireFailed", "lock is held"),
    ("tooz-redis", "tooz.coordination", "ToozConnectionError", "outcome unknown"),
]
ASK = """
import importlib, json, sys
sys.path.append(sys.argv[1])
from clients.retry.libraries import failure_of
told = []
for module, name in json.loads(sys.argv[2]):
    kind = getattr(importlib.import_module(module), name)
    found = failure_of(kind.__new__(kind))
    told.append(found and found.reason)
print(json.dumps(told))
"""


@pytest.mark.live
@pytest.mark.parametrize("library", sorted({row[0] for row in FOREIGN}))
def test_exceptions_of_the_real_libraries_in_their_own_environments(library: str) -> None:
    rows = [row for row in FOREIGN if row[0] == library]
    python = ensure(LIBRARIES.load(library))
    named = json.dumps([row[1:3] for row in rows])
    done = subprocess.run(
        [str(python), "-c", ASK, str(ROOT), named], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for (_, _, name, says), told in zip(rows, json.loads(done.stdout), strict=True):
        assert told is not None, name
        assert told.startswith(says), name


@given(
    budget_ms=st.integers(50, 20_000),
    word_s=st.lists(st.floats(0, 20), max_size=20).map(sorted),
    place=st.integers(1, 30),
    free_s=st.floats(0, 25),
    ttl_ms=st.integers(10, 20_000),
    age_s=st.floats(0, 20),
)
@settings(max_examples=150, deadline=None)
def test_no_word_breaks_a_bound(
    budget_ms: int, word_s: list[float], place: int, free_s: float, ttl_ms: int, age_s: float
) -> None:
    seen: dict[str, Any] = {"queue_position": place, "other_waiters_exist": 30}
    seen |= {
        "release_notice": True,
        "holder_acquired_ago_seconds": age_s,
        "fairness_policy": "fifo",
    }
    bench = Bench(observe=lambda: seen)
    tries: list[int] = []
    ready = free_from(bench, free_s)

    def acquire() -> str | None:
        tries.append(bench.clock.now())
        return ready()

    def notice(most_s: float) -> bool:
        now_s = bench.clock.now() / NS_PER_S
        coming = next((word - now_s for word in word_s if word > now_s), most_s)
        bench.sleep(min(most_s, coming))
        return coming < most_s

    loop = RetryLoop(
        request(budget_ms=budget_ms, ttl_ms=ttl_ms), acquire, options=bench.options,
        sleep=bench.sleep, notice=notice,
    )  # fmt: skip
    with contextlib.suppress(Escalated):
        loop.run()
    floor_ns = 50 * NS_PER_S // 1000
    # A float of seconds may be a nanosecond off.
    assert all(b - a >= floor_ns - 2 for a, b in pairwise(tries))
    assert tries[-1] <= budget_ms * NS_PER_S // 1000 + 2
