"""The redis-py adapters against a real server, also when it dies, stops or loses a reply."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.libraries import REDIS_PY, REDIS_PY_ASYNCIO, REDIS_PY_FENCED, Library
from tests.clients.relay import relay_to
from tests.clients.servers import RedisServer, redis_server
from tests.clients.workers import WorkerUnderTest, worker

pytestmark = pytest.mark.live

LIBRARIES = [REDIS_PY, REDIS_PY_ASYNCIO, REDIS_PY_FENCED]
each = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)


@pytest.fixture(scope="module")
def redis_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for all tests that do not hurt it; keys are kept apart by name."""
    pytest.importorskip("redis", reason="the redis package is not in this environment")
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@contextlib.contextmanager
def client_of(
    library: Library, node: dict[str, Any], directory: Path, **options: Any
) -> Iterator[WorkerUnderTest]:
    with worker(library.command(sys.executable), directory) as client:
        opened = client.open(nodes=[node], options={"socket_timeout_ms": 5_000, **options})
        assert opened.type == "ok", opened
        yield client


@each
def test_waiting_ends_with_the_release_or_with_busy(
    redis_: RedisServer, tmp_path: Path, library: Library
) -> None:
    key = f"wait-{library.name}"
    with (
        client_of(library, redis_.node(), tmp_path) as one,
        client_of(library, redis_.node(), tmp_path, sleep_ms=5) as two,
    ):
        assert one.ask("acquire", key=key, hold="1", ttl_ms=60_000, timeout_ms=0).type == "ok"
        assert two.ask("acquire", key=key, hold="2", ttl_ms=60_000, timeout_ms=50).error == "busy"
        two.send("acquire", key=key, hold="3", ttl_ms=60_000, timeout_ms=20_000)
        assert one.ask("release", key=key, hold="1").type == "ok"
        assert two.receive().type == "ok"


@each
def test_the_lease_is_as_long_as_asked_to_the_millisecond(
    redis_: RedisServer, tmp_path: Path, library: Library
) -> None:
    with client_of(library, redis_.node(), tmp_path) as client:
        for ttl_ms in (1001, 1009, 290, 570, 4_999):  # x / 1000 * 1000 is smaller for some
            key = f"lease-{library.name}-{ttl_ms}"
            got = client.ask("acquire", key=key, hold=key, ttl_ms=ttl_ms, timeout_ms=0)
            left_ms = int(redis_.command("PTTL", key)[1:])
            passed_ms = -(-(got.complete - got.invoke) // 1_000_000) + 500
            assert ttl_ms - passed_ms <= left_ms <= ttl_ms
            ends_ms = int(redis_.command("PEXPIRETIME", key)[1:])
            renewed = client.ask("renew", key=key, hold=key, ttl_ms=60_000)
            assert renewed.type == "ok"
            assert int(redis_.command("PEXPIRETIME", key)[1:]) > ends_ms + 50_000


def test_seconds_for_is_exact_for_every_millisecond() -> None:
    common = importlib.import_module("clients.adapters.redis_common")
    wrong = [ms for ms in range(1, 200_000) if int(common.seconds_for(ms) * 1000) != ms]
    assert wrong == []
    assert common.seconds_for(None) is None


@each
def test_an_expired_lock_is_not_held_and_can_be_taken(
    redis_: RedisServer, tmp_path: Path, library: Library
) -> None:
    key = f"expire-{library.name}"
    with (
        client_of(library, redis_.node(), tmp_path) as one,
        client_of(library, redis_.node(), tmp_path, sleep_ms=5) as two,
    ):
        one.ask("acquire", key=key, hold="1", ttl_ms=30, timeout_ms=0)
        taken = two.ask("acquire", key=key, hold="2", ttl_ms=60_000, timeout_ms=20_000)
        assert taken.type == "ok"
        assert one.ask("believes", key=key, hold="1").value is False
        assert one.ask("renew", key=key, hold="1", ttl_ms=1000).error == "not-held"
        assert one.ask("release", key=key, hold="1").error == "not-held"
        assert two.ask("believes", key=key, hold="2").value is True  # and it was not hurt


@each
@pytest.mark.parametrize("renew", ["reacquire", "extend"])
def test_renew_keeps_the_lock(
    redis_: RedisServer, tmp_path: Path, library: Library, renew: str
) -> None:
    key = f"renew-{library.name}-{renew}"
    with client_of(library, redis_.node(), tmp_path, renew=renew) as client:
        client.ask("acquire", key=key, hold="1", ttl_ms=50_000, timeout_ms=0)
        redis_.command("PEXPIRE", key, "10000")
        assert client.ask("renew", key=key, hold="1", ttl_ms=50_000).type == "ok"
        assert 40_000 < int(redis_.command("PTTL", key)[1:]) <= 50_000


def test_tokens_grow_with_every_grant(redis_: RedisServer, tmp_path: Path) -> None:
    with (
        client_of(REDIS_PY_FENCED, redis_.node(), tmp_path) as one,
        client_of(REDIS_PY_FENCED, redis_.node(), tmp_path) as two,
    ):
        tokens = []
        for number in range(6):
            client = (one, two)[number % 2]
            got = client.ask("acquire", key="f", hold=str(number), ttl_ms=60_000, timeout_ms=0)
            tokens.append(got.value["token"])
            assert (one, two)[1 - number % 2].ask(
                "acquire", key="f", hold=f"busy-{number}", ttl_ms=60_000, timeout_ms=0
            ).error == "busy"
            client.ask("release", key="f", hold=str(number))
        assert tokens == [1, 2, 3, 4, 5, 6]  # a refused attempt uses up no token


def test_a_grant_without_a_token_is_impossible(redis_: RedisServer, tmp_path: Path) -> None:
    redis_.command("SET", "{broken}:fence", "no number")
    with client_of(REDIS_PY_FENCED, redis_.node(), tmp_path) as client:
        got = client.ask("acquire", key="broken", hold="1", ttl_ms=60_000, timeout_ms=0)
        assert got.type == "info"
        assert "not an integer" in (got.error or "")
    assert redis_.command("EXISTS", "broken") == b":0\r\n"


@each
def test_a_refused_connection_is_definite(tmp_path: Path, library: Library) -> None:
    with redis_server(tmp_path) as server, client_of(library, server.node(), tmp_path) as client:
        server.kill()
        got = client.ask("acquire", key="k", hold="1", ttl_ms=1000, timeout_ms=0)
        assert got.type == "fail"
        assert "cannot connect" in (got.error or "")
        server.start()
        assert client.ask("acquire", key="k", hold="2", ttl_ms=1000, timeout_ms=0).type == "ok"


@each
def test_a_server_that_dies_under_a_request_leaves_an_unknown(
    tmp_path: Path, library: Library
) -> None:
    with redis_server(tmp_path) as server:
        assert server._process is not None
        with client_of(library, server.node(), tmp_path) as client:
            client.ask("acquire", key="k", hold="1", ttl_ms=60_000, timeout_ms=0)
            for do, fields in (
                ("release", {"hold": "1"}),
                ("acquire", {"hold": "2", "ttl_ms": 60_000, "timeout_ms": 0}),
            ):
                os.kill(server._process.pid, signal.SIGSTOP)  # takes requests, answers nothing
                client.send(do, key="k", **fields)
                wait_until_sent(server.port)
                server.kill()
                reply = client.receive()
                assert reply.type == "info", reply
                server.start()
                client.ask("acquire", key="warm", hold=f"w{do}", ttl_ms=100, timeout_ms=0)


def wait_until_sent(port: int) -> None:
    """Returns once the stopped server has unread bytes in a socket (ss is not everywhere)."""
    here = f"0100007F:{port:04X}"
    for _ in range(1_000_000):
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1] == here and fields[3] == "01" and int(fields[4].split(":")[1], 16) > 0:
                return
    raise AssertionError("the request never arrived")


@each
def test_a_server_that_does_not_answer_is_an_unknown(tmp_path: Path, library: Library) -> None:
    with redis_server(tmp_path) as server:
        assert server._process is not None
        with client_of(library, server.node(), tmp_path, socket_timeout_ms=200) as client:
            client.ask("acquire", key="warm", hold="0", ttl_ms=100, timeout_ms=0)
            os.kill(server._process.pid, signal.SIGSTOP)
            got = client.ask("acquire", key="k", hold="1", ttl_ms=60_000, timeout_ms=0)
            assert (got.type, "Timeout" in (got.error or "")) == ("info", True)
            os.kill(server._process.pid, signal.SIGCONT)
            # The late request was carried out: the unknown acquire does hold the lock.
            again = client.ask("acquire", key="k", hold="2", ttl_ms=60_000, timeout_ms=0)
            assert again.error == "busy"


@each
@pytest.mark.parametrize("retries", [0, 3])
def test_a_lost_reply_is_unknown_with_and_without_client_retries(
    redis_: RedisServer, tmp_path: Path, library: Library, retries: int
) -> None:
    key = f"lost-{library.name}-{retries}"
    word = b"EVALSHA" if library.fencing else b"SET"
    with relay_to(redis_.port) as relay:
        node = {**redis_.node(), "port": relay.port}
        with client_of(library, node, tmp_path, client_retries=retries) as client:
            client.ask("acquire", key=f"warm-{key}", hold="0", ttl_ms=100, timeout_ms=0)
            relay.cut_reply(word)
            got = client.ask("acquire", key=key, hold="1", ttl_ms=60_000, timeout_ms=0)
            assert relay.cuts == 1
            # Retries make the library say "busy" of its own first success; that is no refusal.
            assert got.type == "info", got
            assert ("sent again" in (got.error or "")) == (retries > 0)
    assert redis_.command("EXISTS", key) == b":1\r\n"


@each
def test_a_release_that_was_sent_twice_is_not_called_not_held(
    redis_: RedisServer, tmp_path: Path, library: Library
) -> None:
    key = f"twice-{library.name}"
    with relay_to(redis_.port) as relay:
        node = {**redis_.node(), "port": relay.port}
        with client_of(library, node, tmp_path, client_retries=3) as client:
            client.ask("acquire", key=f"warm-{key}", hold="0", ttl_ms=60_000, timeout_ms=0)
            client.ask("release", key=f"warm-{key}", hold="0")
            client.ask("acquire", key=key, hold="1", ttl_ms=60_000, timeout_ms=0)
            relay.cut_reply(b"EVALSHA")
            reply = client.ask("release", key=key, hold="1")
            assert (reply.type, relay.cuts) == ("info", 1)


def test_a_lost_release_can_be_repeated_by_asyncio_only(
    redis_: RedisServer, tmp_path: Path
) -> None:
    outcomes = {}
    for library in (REDIS_PY, REDIS_PY_ASYNCIO):
        key = f"again-{library.name}"
        with relay_to(redis_.port) as relay:
            node = {**redis_.node(), "port": relay.port}
            with client_of(library, node, tmp_path) as client:
                client.ask("acquire", key=key, hold="1", ttl_ms=60_000, timeout_ms=0)
                relay.cut_reply(b"EVALSHA")
                assert client.ask("release", key=key, hold="1").type == "info"
                outcomes[library.name] = client.ask("release", key=key, hold="1")
    # The asyncio lock asks the server, which says that it is gone (the first release worked).
    assert outcomes["redis-py-asyncio"].error == "not-held"
    # The synchronous one has forgotten its token: definite, but nobody asked the server.
    assert outcomes["redis-py"].type == "fail"
    assert "LockError" in (outcomes["redis-py"].error or "")


@each
def test_options_are_checked_before_anything_is_done(tmp_path: Path, library: Library) -> None:
    with worker(library.command(sys.executable), tmp_path) as client:
        node = {"name": "redis", "host": "127.0.0.1", "port": 1}
        options = {"sleeps": 1, "sleep_ms": "5", "thread_local": 1, "renew": "no", "node": None}
        said = client.open(nodes=[node], options=options).error or ""
        for words in (
            "option 'sleeps' is unknown (known: node, client_retries",
            "option sleep_ms is '5'; it must be int",
            "option thread_local is 1; it must be bool",
            "option renew is 'no'; it must be reacquire or extend",
        ):
            assert words in said
        assert "the nodes are: redis" in (
            client.open(nodes=[node], options={"node": "other"}).error or ""
        )
        negative = client.open(nodes=[node], options={"client_retries": -1}).error or ""
        assert "must not be negative" in negative


def test_thread_local_decides_where_the_token_is(redis_: RedisServer, tmp_path: Path) -> None:
    # With plain storage the lock can be released by another thread; see the library's docstring.
    for flag in (True, False):
        with client_of(REDIS_PY, redis_.node(), tmp_path, thread_local=flag) as client:
            key = f"local-{flag}"
            assert client.ask("acquire", key=key, hold="1", ttl_ms=1000, timeout_ms=0).type == "ok"
            assert client.ask("release", key=key, hold="1").type == "ok"
    module = importlib.import_module("clients.adapters.redis_py")
    for flag, kind in ((True, "_thread._local"), (False, "types.SimpleNamespace")):
        adapter = module.RedisPy()
        adapter.open([redis_.node()], {"thread_local": flag})
        local = adapter.make_lock("k", 1000).local
        assert f"{type(local).__module__}.{type(local).__name__}" == kind
        adapter.close()
