"""The Redlock adapters on several real servers, also when some are dead, stopped or forget."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clients.environments import ensure
from clients.libraries import POTTERY, REDLOCK_PY, Library
from harness.core.errors import LockhavocError
from tests.clients.servers import RedisServer, redis_server
from tests.clients.workers import WorkerUnderTest, worker

TTL_MS = 60_000
each = pytest.mark.parametrize("library", [REDLOCK_PY, POTTERY], ids=lambda one: one.name)
live = pytest.mark.live


@pytest.fixture
def five(tmp_path: Path) -> Iterator[list[RedisServer]]:
    with contextlib.ExitStack() as stack:
        folders = [tmp_path / f"redis{number}" for number in range(1, 6)]
        for folder in folders:
            folder.mkdir()
        servers = [stack.enter_context(redis_server(folder)) for folder in folders]
        yield servers
        for server in servers:
            go_on(server)


@functools.cache
def interpreter_of(name: str) -> Path:
    library = {one.name: one for one in (REDLOCK_PY, POTTERY)}[name]
    try:
        return ensure(library, python=sys.executable)
    except LockhavocError:
        return ensure(library)


@contextlib.contextmanager
def client_of(
    library: Library, servers: Sequence[RedisServer], directory: Path, **options: Any
) -> Iterator[WorkerUnderTest]:
    nodes = [{**server.node(), "name": f"redis{n}"} for n, server in enumerate(servers, 1)]
    with worker(library.command(interpreter_of(library.name)), directory) as client:
        opened = client.open(nodes=nodes, options=options)
        assert opened.type == "ok", opened
        yield client


def stop(server: RedisServer) -> None:
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGSTOP)


def go_on(server: RedisServer) -> None:
    if server._process is not None:
        os.kill(server._process.pid, signal.SIGCONT)


def acquire(client: WorkerUnderTest, hold: str, **fields: Any) -> tuple[str, str]:
    given = {"key": "k", "hold": hold, "ttl_ms": TTL_MS, "timeout_ms": 0, **fields}
    reply = client.ask("acquire", **given)
    return reply.type, reply.error or ""


def have(servers: Sequence[RedisServer], key: str) -> int:
    return sum(server.command("EXISTS", key) == b":1\r\n" for server in servers)


def await_keys(servers: Sequence[RedisServer], key: str) -> None:
    """Until every server has it: pottery does not wait for the last two."""
    deadline = time.monotonic() + 20
    while have(servers, key) < len(servers):
        assert time.monotonic() < deadline


def key_of(library: Library) -> str:
    return "redlock:k" if library is POTTERY else "k"


@live
@each
def test_a_majority_locks_and_a_refusal_is_no_observation(
    five: list[RedisServer], tmp_path: Path, library: Library
) -> None:
    with client_of(library, five, tmp_path) as one, client_of(library, five, tmp_path) as two:
        assert acquire(one, "1") == ("ok", "")
        assert have(five, key_of(library)) >= 3  # pottery's last two may still be on their way
        kind, error = acquire(two, "2")
        assert kind == "fail"
        assert error.startswith("no quorum: ")
        assert one.ask("release", key="k", hold="1").type == "ok"
        assert acquire(two, "3", timeout_ms=20_000) == ("ok", "")


@live
@each
def test_two_dead_servers_of_five(
    five: list[RedisServer], tmp_path: Path, library: Library
) -> None:
    """pottery goes on with the majority; redlock-py raises, and leaves the lock behind."""
    for server in five[:2]:
        server.kill()
    with client_of(library, five, tmp_path) as one, client_of(library, five, tmp_path) as two:
        kind, error = acquire(one, "1")
        assert have(five[2:], key_of(library)) == 3
        assert acquire(two, "2")[0] == "fail"
        if library is POTTERY:
            assert kind == "ok"
            assert one.ask("release", key="k", hold="1").type == "ok"
            assert have(five[2:], key_of(library)) == 0
        else:
            assert (kind, "MultipleRedlockException" in error) == ("info", True)


@live
@each
def test_without_a_majority_nothing_is_got(
    five: list[RedisServer], tmp_path: Path, library: Library
) -> None:
    for server in five[:3]:
        server.kill()
    with client_of(library, five, tmp_path) as one:
        kind, error = acquire(one, "1")
        assert (kind, error) == ("fail", "no quorum: 0 of 5 servers said taken, 3 refused")
        assert have(five[3:], key_of(library)) == 0


@live
@each
def test_answers_that_do_not_come_leave_it_unknown(
    five: list[RedisServer], tmp_path: Path, library: Library
) -> None:
    """Three stopped servers carry out what they were sent as soon as they go on."""
    with client_of(library, five, tmp_path, socket_timeout_ms=100) as one:
        assert acquire(one, "0") == ("ok", "")
        assert one.ask("release", key="k", hold="0").type == "ok"
        for server in five[:3]:
            stop(server)
        kind, error = acquire(one, "1")
        assert kind == "info", error
        assert "3 of 5 servers may have the key" in error


@live
@each
def test_a_release_counts_only_if_a_majority_confirms_it(
    five: list[RedisServer], tmp_path: Path, library: Library
) -> None:
    with client_of(library, five, tmp_path, socket_timeout_ms=100) as one:
        assert acquire(one, "1") == ("ok", "")
        for server in five[:3]:
            stop(server)
        reply = one.ask("release", key="k", hold="1")
        assert reply.type == "info"
        for server in five[:3]:
            go_on(server)


@live
@each
def test_servers_that_forgot_the_lock_make_it_not_held(
    five: list[RedisServer], tmp_path: Path, library: Library
) -> None:
    with client_of(library, five, tmp_path) as one:
        assert acquire(one, "1") == ("ok", "")
        await_keys(five, key_of(library))
        for server in five[1:4]:
            server.command("FLUSHALL")
        assert one.ask("release", key="k", hold="1").error == "not-held"
        assert have(five, key_of(library)) == 0, "the release took the rest away"


@live
def test_an_extension_too_many_is_refused_without_asking(
    five: list[RedisServer], tmp_path: Path
) -> None:
    with client_of(POTTERY, five[:1], tmp_path, num_extensions=1) as one:
        assert acquire(one, "1", ttl_ms=5_000) == ("ok", "")
        assert one.ask("renew", key="k", hold="1", ttl_ms=TTL_MS).type == "ok"
        left = five[0].command("PTTL", "redlock:k")
        assert 5_000 < int(left[1:].split()[0]) <= TTL_MS, "the new length is the one asked for"
        reply = one.ask("renew", key="k", hold="1", ttl_ms=TTL_MS)
        assert reply.type == "fail"
        assert "TooManyExtensions" in (reply.error or "")


@live
def test_tries_and_pauses_of_redlock_py_are_those_asked_for(
    five: list[RedisServer], tmp_path: Path
) -> None:
    with (
        client_of(REDLOCK_PY, five[:1], tmp_path) as one,
        client_of(REDLOCK_PY, five[:1], tmp_path, retry_count=2, retry_delay_ms=400) as two,
    ):
        assert acquire(one, "1") == ("ok", "")
        for hold, timeout_ms, pauses in (("2", 0, 1), ("3", 1_000, 2)):
            reply = two.ask("acquire", key="k", hold=hold, ttl_ms=TTL_MS, timeout_ms=timeout_ms)
            took_ms = (reply.complete - reply.invoke) / 1e6
            assert reply.error == "busy"
            assert 400 * pauses <= took_ms < 5_000


@live
@each
def test_a_command_is_sent_once_unless_retries_are_asked_for(
    five: list[RedisServer], tmp_path: Path, library: Library
) -> None:
    stop(five[0])
    for retries, least_ms in ((0, 100), (2, 300)):
        options = {"client_retries": retries, "socket_timeout_ms": 100, "connect_timeout_ms": 1000}
        with client_of(library, five[:1], tmp_path, **options) as one:
            reply = one.ask("acquire", key="k", hold="1", ttl_ms=TTL_MS, timeout_ms=0)
            assert reply.type == "info"
            assert (reply.complete - reply.invoke) / 1e6 >= least_ms


@live
@each
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"socket_timeout_ms": 0}, "option socket_timeout_ms is 0; it must be a whole number >= 1"),
        ({"client_retries": True}, "option client_retries is True"),
        ({"sleep": 1, "client_retries": -1}, "option 'sleep' is unknown"),
    ],
)
def test_wrong_options_are_named(
    tmp_path: Path, library: Library, options: dict[str, Any], says: str
) -> None:
    with worker(library.command(interpreter_of(library.name)), tmp_path) as client:
        reply = client.open(nodes=[{"name": "a", "host": "127.0.0.1", "port": 1}], options=options)
        assert reply.type == "fail"
        assert says in (reply.error or "")


def test_votes_are_counted_per_owner_and_until_deleted() -> None:
    common = pytest.importorskip("clients.adapters.redlock_common")
    adapter = pytest.importorskip("clients.worker.adapter")
    ballot = common.Ballot(5)
    for server in "abc":
        ballot.was_set("first", server, "may")
    for server in "ab":
        ballot.was_set(b"second", server, "here")
    with pytest.raises(adapter.Unknown, match="3 of 5 servers may have the key"):
        ballot.refuse_acquire()
    ballot.was_set("first", "a", "taken")  # a later try finds the key of the first: still there
    with pytest.raises(adapter.Unknown):
        ballot.refuse_acquire()
    ballot.was_deleted("first", "a", "deleted")
    with pytest.raises(adapter.Refused, match="no quorum"):
        ballot.refuse_acquire()
    ballot.was_set("first", "a", "may")
    with pytest.raises(adapter.Unknown):
        ballot.refuse_acquire()
    ballot.begin()
    with pytest.raises(adapter.Unknown, match="0 of 5 servers deleted"):
        ballot.judge_release("first")
    for server, word in zip("abcde", ["absent", "absent", "deleted", "deleted", ""], strict=True):
        if word:
            ballot.was_deleted("first", server, word)
    with pytest.raises(adapter.Unknown, match="2 of 5 servers deleted the key, 2 had none"):
        ballot.judge_release("first")
    ballot.was_deleted("first", "e", "absent")
    with pytest.raises(adapter.Refused, match="not-held"):
        ballot.judge_release("first")
    ballot.was_deleted("first", "e", "deleted")
    ballot.judge_release("first")
