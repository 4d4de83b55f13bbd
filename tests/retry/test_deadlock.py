"""Two real processes in a deadlock on a real server: one sees the cycle, both are halted."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from clients.retry.halts import FileHalts, RedisHalts
from clients.retry.record import read_records
from clients.retry.redis_link import Redis
from harness.core.clock import NS_PER_S
from tests.clients.servers import redis_server
from tests.retry.test_command import lockhavoc
from tests.retry.test_sinks import until

pytestmark = pytest.mark.live

# Holds its own lock, notes what it wants, and waits for the other's.  Only ``w1`` looks at who
# waits for whom; ``w2`` learns of the deadlock from the board alone.
CLIENT = textwrap.dedent("""
    import sys, json, time
    from clients.retry.halts import FileHalts, RedisHalts
    from clients.retry.loop import RetryLoop
    from clients.retry.record import JsonLines, Request
    from clients.retry.redis_link import Redis
    from clients.retry.waiting import Escalated, Options

    url, board, log, name, own, wanted = sys.argv[1:]
    redis = Redis(url)
    assert redis.call("SET", own, name, "NX", "PX", 60_000) or redis.call("GET", own) == name
    redis.call("HSET", "waits", name, wanted)

    def observe():
        if name != "w1":
            return {"other_waiters_exist": True}
        flat = redis.call("HGETALL", "waits")
        pairs = [[who, redis.call("GET", lock)] for who, lock in zip(flat[::2], flat[1::2])]
        return {"wait_for": [pair for pair in pairs if pair[1]]}

    def attempt():
        redis.call("RPUSH", "tries", json.dumps([name, time.monotonic_ns()]))
        return redis.call("SET", wanted, name, "NX", "PX", 60_000)

    halts = RedisHalts(Redis(url)) if board == "redis" else FileHalts(board)
    options = Options(observe=observe, log=JsonLines(log), halts=halts)
    loop = RetryLoop(Request(wanted, name, 30_000, seed=1), attempt, options=options)
    try:
        loop.run()
    except Escalated as gone:
        print(json.dumps([gone.decision.deadlock_detected, str(gone), time.monotonic_ns()]))
""")


@pytest.mark.parametrize("kind", ["file", "redis"])
def test_a_cycle_that_one_process_sees_halts_both(tmp_path: Path, kind: str) -> None:
    file, log = tmp_path / "orders.halts", tmp_path / "retry.jsonl"
    with (
        redis_server(tmp_path) as server,
        Redis(url := f"redis://127.0.0.1:{server.port}") as redis,
    ):

        def start(name: str, own: str, wanted: str) -> subprocess.Popen[str]:
            argv = [sys.executable, "-c", CLIENT, url, "redis" if kind == "redis" else str(file)]
            argv += [str(log), name, own, wanted]
            return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

        redis.call("SET", "a", "the test")
        clients = {"w2": start("w2", "b", "a")}
        try:
            until(lambda: redis.call("LLEN", "tries"))  # w2 waits: now w1 closes the circle
            redis.call("SET", "a", "w1")
            clients["w1"] = start("w1", "a", "b")
            ends: dict[str, Any] = {}
            for name, client in clients.items():
                out, _ = client.communicate(timeout=20)
                ends[name] = json.loads(out)
        finally:
            for client in clients.values():
                client.kill()
                client.communicate()
        tries = [json.loads(line) for line in redis.call("LRANGE", "tries", 0, -1)]
        seen_ns = ends["w1"][2]
        assert {name for name, _ in tries} == {"w1", "w2"}
        # One may have been on its way; the next would come within a second.
        late = [one for one in tries if one[1] > seen_ns + NS_PER_S // 4]
        assert late == [], "an attempt after the halt"
        assert [deadlock for deadlock, _, _ in ends.values()] == [True, True]
        board = RedisHalts(redis) if kind == "redis" else FileHalts(file)
        assert set(board.all()) == {"w1", "w2"}
        outcomes = [r["outcome"] for r in read_records(log) if r["kind"] == "outcome"]
        assert outcomes == ["escalated", "escalated"]
        place = ("--redis", url) if kind == "redis" else (str(file),)
        done = lockhavoc("retry", "halts", *place, "--resolve-all")
        assert (done.returncode, "2 may go on" in done.stdout) == (0, True)
        assert board.all() == {}
