"""Webhook and Redis list, against real servers: delivered, refused, late, away; and re-queued."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from clients.retry.halts import Board, FileHalts, Halts, RedisHalts
from clients.retry.loop import RetryLoop
from clients.retry.record import JsonLines, Request, read_records, requeue
from clients.retry.redis_link import Redis, RedisSaid
from clients.retry.sinks import RedisList, Webhook, each, requeue_list
from clients.retry.waiting import Escalated, Options
from harness.core.errors import UserError
from tests.clients.servers import RedisServer, redis_server
from tests.retry.servers import HttpServer, http_server, reply
from tests.retry.test_command import lockhavoc
from tests.retry.test_loop import Bench

Letter = dict[str, Any]


def until(condition: Callable[[], object], limit_s: float = 10) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def letter(name: str = "w1", lock: str = "orders") -> Letter:
    asked = {"lock_name": lock, "requester_id": name, "budget_ms": 300, "constraints": ["be nice"]}
    return {"kind": "dead-letter", "outcome": "escalated", "why": "x", "request": asked}


def turns(*codes: int) -> tuple[Callable[[BaseHTTPRequestHandler, bytes], None], list[int]]:
    left = list(codes)

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        reply(handler, left.pop(0) if left else 200)

    return answer, left


def bodies(server: HttpServer) -> list[Letter]:
    return [body for _, _, body in server.asked]


def test_a_letter_is_delivered_and_nothing_kept() -> None:
    kept: list[Letter] = []
    answer, _ = turns()
    with http_server(answer) as server:
        with Webhook(server.url + "/hook", kept=kept.append) as hook:
            hook(letter())
        assert bodies(server) == [letter()]
        assert server.asked[0][0] == "/v1/hook"
    assert kept == []


def test_a_server_in_trouble_is_tried_again() -> None:
    kept: list[Letter] = []
    answer, left = turns(503, 429)
    with http_server(answer) as server, Webhook(server.url, kept=kept.append) as hook:
        hook(letter())
        until(lambda: len(server.asked) == 3)
    assert (left, kept) == ([], [])


def test_what_is_refused_is_kept_and_can_be_queued_again(tmp_path: Path) -> None:
    kept = JsonLines(tmp_path / "kept.jsonl")
    answer, _ = turns(400)
    with http_server(answer) as server:
        with Webhook(server.url, kept=kept) as hook:
            hook(letter())
        assert len(server.asked) == 1, "what is refused is not tried again"
    (record,) = read_records(kept.path)
    assert "answered 400" in record["undelivered"]
    given: list[Request] = []
    assert requeue(kept.path, given.append) == 1
    assert (given[0].requester_id, given[0].constraints) == ("w1", ("be nice",))


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/hook", "silent"])
def test_nobody_there_or_silent_costs_the_caller_nothing(url: str) -> None:
    kept: list[Letter] = []
    over = threading.Event()

    def silent(*_: object) -> None:
        over.wait()

    with http_server(silent) as server:
        place = server.url if url == "silent" else url
        hook = Webhook(place, kept=kept.append, timeout_s=0.2, within_s=0.5)
        began = time.monotonic()
        hook(letter())
        assert time.monotonic() - began < 0.2
        until(lambda: kept)
        assert time.monotonic() - began >= 0.3, "it was tried again within its time"
        hook.close()
        over.set()
    assert kept[0]["request"] == letter()["request"]
    assert "127.0.0.1" in kept[0]["undelivered"]


def test_too_many_and_too_late_are_kept() -> None:
    kept: list[Letter] = []
    over, asked = threading.Event(), threading.Event()

    def silent(*_: object) -> None:
        asked.set()
        over.wait()

    with http_server(silent) as server:
        hook = Webhook(server.url, kept=kept.append, timeout_s=60, within_s=60, waiting_max=1)
        hook(letter("a"))
        assert asked.wait(10)
        hook(letter("b"))
        hook(letter("c"))
        assert [k["request"]["requester_id"] for k in kept] == ["c"]
        hook._end = 0.0  # as ``close`` would, without its wait
        over.set()
        hook.close(0)
        hook(letter("d"))
    assert {k["request"]["requester_id"] for k in kept} >= {"c", "b", "d"}


def test_each_gives_to_all_and_a_webhook_hides_its_path(caplog: pytest.LogCaptureFixture) -> None:
    got: list[Letter] = []

    def full(_: Letter) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        each(full, got.append)(letter())
    assert got == [letter()]
    with Webhook("http://127.0.0.1:9/secret", kept=got.append, within_s=0.1) as hook:
        hook(letter())
    assert "secret" not in repr(hook) + caplog.text + str(got[1]["undelivered"])
    with pytest.raises(UserError, match="plain http"):
        Webhook("http://hooks.example.org/x", kept=full, headers={"Authorization": "y"})


def test_a_loop_tells_a_webhook_that_it_escalates() -> None:
    answer, _ = turns()
    with http_server(answer) as server, Webhook(server.url, kept=print) as hook:
        bench = Bench()
        bench.options.escalations = hook
        loop = RetryLoop[str](
            Request("orders", "w1", 300), lambda: None, options=bench.options, sleep=bench.sleep
        )
        with pytest.raises(Escalated):
            loop.run()
        until(lambda: server.asked)
    (sent,) = bodies(server)
    assert (sent["kind"], sent["lock"]) == ("escalation", "orders")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


def url_of(server: RedisServer, database: int = 0) -> str:
    return f"redis://127.0.0.1:{server.port}/{database}"


@pytest.mark.live
def test_letters_in_redis_are_queued_again(live: RedisServer) -> None:
    redis = Redis(url_of(live, 1))
    sink = RedisList(redis, "dead")
    loop = RetryLoop[str](Request("orders", "w1", 300), lambda: None)
    loop.options = Options(dead_letters=sink)
    with pytest.raises(Escalated):
        loop.run()
    sink(letter("w2", "bills"))
    sink({"kind": "other"})
    words = ("retry", "requeue", "--redis", url_of(live, 1))
    done = lockhavoc(*words, "--lock", "bills")
    assert (done.returncode, done.stderr) == (0, "lockhavoc: 1 request\n")
    assert json.loads(done.stdout)["requester_id"] == "w2"
    given: list[Request] = []

    def fail(_: Request) -> None:
        raise RuntimeError("queue is away")

    with pytest.raises(RuntimeError):
        requeue_list(redis, "dead", fail)
    assert redis.call("LLEN", "dead") == 2, "a queue that is away costs no letter"
    assert requeue_list(redis, "dead", given.append) == 1
    assert given == [Request("orders", "w1", 300)]
    assert redis.call("LRANGE", "dead", 0, -1) == ['{"kind":"other"}']
    redis.close()


@pytest.mark.live
def test_a_server_that_is_away_costs_no_letter(tmp_path: Path) -> None:
    kept: list[Letter] = []
    with redis_server(tmp_path) as server:
        redis = Redis(url_of(server))
        sink = RedisList(redis, "dead", kept=kept.append)
        sink(letter("a"))
        server.kill()
        sink(letter("b"))
        with pytest.raises(OSError, match=r".+"):
            RedisList(redis, "dead")(letter("c"))
        server.start()
        sink(letter("d"))
        assert redis.call("LLEN", "dead") == 1  # it was started without its data
        redis.call("SET", "text", "x")
        RedisList(redis, "text", kept=kept.append)(letter("e"))
        redis.close()
    assert [k["request"]["requester_id"] for k in kept] == ["b", "e"]
    assert "WRONGTYPE" in kept[1]["undelivered"]
    done = lockhavoc("retry", "requeue", "--redis", url_of(server))
    assert (done.returncode, "cannot be used" in done.stderr) == (255, True)


@pytest.mark.live
def test_a_password_is_used_and_never_told(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        with Redis(url_of(server)) as redis:
            redis.call("CONFIG", "SET", "requirepass", "hush")
        with Redis(f"redis://:hush@127.0.0.1:{server.port}") as redis:
            assert redis.call("PING") == "PONG"
        wrong = Redis(f"redis://:wr0ng@127.0.0.1:{server.port}")
        for _ in range(2):  # the second call must not use a connection that is not logged in
            with pytest.raises(RedisSaid) as caught:
                wrong.call("PING")
            assert "wr0ng" not in str(caught.value) + repr(wrong)


@pytest.fixture(params=["memory", "file", pytest.param("redis", marks=pytest.mark.live)])
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Board]:
    if request.param == "memory":
        yield Halts()
    elif request.param == "file":
        yield FileHalts(tmp_path / "halts")
    else:
        with Redis(url_of(request.getfixturevalue("live"), 2)) as redis:
            yield RedisHalts(redis)


def test_boards_of_halts_do_the_same(board: Board) -> None:
    assert (board.why("a"), board.all(), board.resolve()) == (None, {}, 0)
    board.halt(["a", "b"], "first")
    board.halt(["b", "c"], "second")
    assert board.all() == {"a": "first", "b": "first", "c": "second"}
    assert board.resolve(["b", "x"]) == 1
    assert (board.why("b"), board.why("c")) == (None, "second")
    assert board.resolve() == 2
    assert board.all() == {}


def test_a_board_out_of_reach_halts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.options.halts = RedisHalts(Redis("redis://127.0.0.1:9"))
    loop = RetryLoop(Request("a", "w1", 300), lambda: "grant", options=bench.options)
    assert loop.run() == "grant"
    assert "cannot see whether 'w1' is halted" in caplog.text


def test_halts_can_be_seen_and_resolved_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "orders.halts"
    FileHalts(file).halt(["w1", "w2"], "wait for each other")
    assert (file.stat().st_mode & 0o077) == 0
    done = lockhavoc("retry", "halts", str(file))
    assert "w1 is halted: wait for each other" in done.stdout
    done = lockhavoc("retry", "halts", str(file), "--resolve", "w1", "--json")
    assert json.loads(done.stdout)["halted"] == {"w2": "wait for each other"}
    done = lockhavoc("retry", "halts", str(file), "--resolve", "w1")
    assert (done.returncode, "halted: w2" in done.stderr) == (254, True)
    assert "nobody is halted" in lockhavoc("retry", "halts", str(file), "--resolve-all").stdout
    assert lockhavoc("retry", "halts", str(tmp_path / "none")).returncode == 254
    file.write_text("[]")
    assert lockhavoc("retry", "halts", str(file)).returncode == 254
