"""What every registered library must do, whoever wrote its adapter.

Canaries must speak the protocol like the others; that they break the lock is their purpose, so
the rules of locking are asked of the right ones only.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients import toolchains
from clients.environments import ensure
from clients.libraries import Library
from clients.registry import LIBRARIES
from clients.worker.adapter import KINDS
from harness.core.errors import LockhavocError
from tests.clients.servers import RedisServer, redis_server
from tests.clients.workers import WorkerUnderTest, worker
from tests.conformance.sharing import shared_rules

NAMES = LIBRARIES.names()
POWERS = ("renew", "believes", "fenced", "signals-loss", "read", "permits")
REDIS = {"redis-single", "valkey-single"}
# Libraries for other servers have live tests of their own beside this file.
# Those in Java renew by themselves and are built in minutes: tests/clients/test_toolchains.py.
ON_REDIS = [
    name
    for name, library in ((name, LIBRARIES.load(name)) for name in NAMES)
    if REDIS & set(library.backends) and library.language != "java"
]
RIGHT = [name for name in ON_REDIS if not LIBRARIES.load(name).canary]
TTL_MS = 60_000  # longer than any test: nothing expires by accident on a slow machine
SHORT_MS = 200
RENEWING = [name for name in RIGHT if LIBRARIES.load(name).extra.get("renews")]
EXPIRING = [n for n in RIGHT if LIBRARIES.load(n).lease == "ttl" and n not in RENEWING]


def refused(name: str) -> str:
    """What an acquire says that was not granted in time."""
    return LIBRARIES.load(name).extra.get("refuses", "busy")


def shortest(name: str) -> int:
    """A lease that ends soon, in ms."""
    return max(SHORT_MS, int(LIBRARIES.load(name).extra.get("ttl_ms_min", "0")))


@pytest.mark.parametrize("name", NAMES)
def test_the_registry_entry_is_whole(name: str) -> None:
    library = LIBRARIES.load(name)
    assert library.name == name
    assert library.adapter.is_file()
    assert library.requirements.is_file()
    assert library.lease in KINDS
    assert set(library.powers) <= set(POWERS)
    assert list(library.powers) == sorted(library.powers, key=POWERS.index)
    assert library.backends
    assert library.imports or library.language != "python"
    assert library.says
    assert bool(library.fencing) == ("fenced" in library.powers)
    assert (library.loss_signal == "callback") == ("signals-loss" in library.powers)


@pytest.fixture(scope="module")
def redis_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


def interpreter(library: Library) -> Path:
    """This interpreter if it has the library, else its own environment."""
    if library.language != "python":
        reason = toolchains.missing(library)
        if reason:
            pytest.skip(reason)
        return ensure(library)
    try:
        return ensure(library, python=sys.executable)
    except LockhavocError:
        return ensure(library)


@contextlib.contextmanager
def opened(name: str, server: RedisServer, directory: Path) -> Iterator[WorkerUnderTest]:
    library = LIBRARIES.load(name)
    with worker(library.command(interpreter(library)), directory) as client:
        reply = client.open(nodes=[server.node()])
        assert reply.type == "ok", reply
        yield client


def acquire(client: WorkerUnderTest, key: str, hold: str, ttl_ms: int = TTL_MS) -> str:
    reply = client.ask("acquire", key=key, hold=hold, ttl_ms=ttl_ms, timeout_ms=0)
    return reply.type if reply.type != "fail" else reply.error or ""


@pytest.mark.live
@pytest.mark.parametrize("name", ON_REDIS)
def test_the_worker_is_what_the_registry_says(
    name: str, redis_: RedisServer, tmp_path: Path
) -> None:
    library, key = LIBRARIES.load(name), f"hello-{name}"
    with opened(name, redis_, tmp_path) as client:
        assert client.hello["protocol"] == 1
        assert client.hello["powers"] == list(library.powers)
        assert client.hello["lease"]["kind"] == library.lease
        assert client.hello["library"]
        got = client.ask("acquire", key=key, hold="1", ttl_ms=TTL_MS, timeout_ms=0)
        assert got.type == "ok"
        assert set(got.value) - {"nodes"} == {"owner", "token"}
        assert isinstance(got.value["owner"], str)
        assert isinstance(got.value["token"], int if library.fencing else type(None))
        if "believes" in library.powers:
            assert client.ask("believes", key=key, hold="1").value is True
        if "renew" in library.powers:
            assert client.ask("renew", key=key, hold="1", ttl_ms=TTL_MS).type == "ok"
        assert client.ask("release", key=key, hold="1").type == "ok"
        assert client.ask("release", key=key, hold="1").type == "fail"
        assert client.end() == 0


@pytest.mark.live
@pytest.mark.parametrize("name", ON_REDIS)
def test_an_unknown_option_is_refused(name: str, redis_: RedisServer, tmp_path: Path) -> None:
    library = LIBRARIES.load(name)
    with worker(library.command(interpreter(library)), tmp_path) as client:
        reply = client.open(nodes=[redis_.node()], options={"no_such_option": 1})
        assert reply.type == "fail"
        assert "no_such_option" in (reply.error or "")


@pytest.mark.live
@pytest.mark.parametrize("name", RIGHT)
def test_the_rules_of_a_lock(name: str, redis_: RedisServer, tmp_path: Path) -> None:
    with opened(name, redis_, tmp_path) as one, opened(name, redis_, tmp_path) as two:
        key = f"rules-{name}"
        assert acquire(one, key, "1") == "ok"
        started = time.monotonic()
        assert acquire(two, key, "2") == refused(name)
        assert time.monotonic() - started < 10, "timeout_ms=0 must not wait"
        assert acquire(two, f"{key}-other", "3") == "ok", "keys are independent"
        assert one.ask("release", key=key, hold="1").type == "ok"
        assert acquire(two, key, "4") == "ok"
        # A session ends without taking its locks along: only their lease or a release does.
        if LIBRARIES.load(name).lease in ("ttl", "none"):
            assert two.ask("close").type == "ok"
            assert acquire(one, key, "5") == refused(name)
            assert two.open(nodes=[redis_.node()]).type == "ok"
            assert acquire(two, f"{key}-again", "6") == "ok"


@pytest.mark.live
@pytest.mark.parametrize(
    "name", [name for name in RIGHT if {"read", "permits"} & {*LIBRARIES.load(name).powers}]
)
def test_who_may_be_inside_beside_whom(name: str, redis_: RedisServer, tmp_path: Path) -> None:
    library = LIBRARIES.load(name)
    with opened(name, redis_, tmp_path) as one, opened(name, redis_, tmp_path) as two:
        shared_rules(library.powers, one, two, f"shared-{name}")


@pytest.mark.live
@pytest.mark.parametrize("name", EXPIRING)
def test_a_lease_ends_and_the_former_holder_is_told(
    name: str, redis_: RedisServer, tmp_path: Path
) -> None:
    library = LIBRARIES.load(name)
    with opened(name, redis_, tmp_path) as one, opened(name, redis_, tmp_path) as two:
        key = f"lease-{name}"
        assert acquire(one, key, "1", ttl_ms=shortest(name)) == "ok"
        taken = two.ask("acquire", key=key, hold="2", ttl_ms=TTL_MS, timeout_ms=20_000)
        assert taken.type == "ok"
        if "believes" in library.powers:
            assert one.ask("believes", key=key, hold="1").value is False
        if "renew" in library.powers:
            # As long as at the acquire: redsync can do no other.
            again = one.ask("renew", key=key, hold="1", ttl_ms=shortest(name))
            assert again.error == "not-held"
        assert one.ask("release", key=key, hold="1").error == "not-held"
        assert acquire(one, key, "3") == refused(name), "the new holder's lock was not touched"


@pytest.mark.live
@pytest.mark.parametrize("name", RENEWING)
def test_a_lock_that_renews_itself_outlives_its_lease(
    name: str, redis_: RedisServer, tmp_path: Path
) -> None:
    ttl_ms = max(1000, shortest(name))
    with opened(name, redis_, tmp_path) as one, opened(name, redis_, tmp_path) as two:
        key = f"renewing-{name}"
        assert acquire(one, key, "1", ttl_ms=ttl_ms) == "ok"
        waited = two.ask("acquire", key=key, hold="2", ttl_ms=ttl_ms, timeout_ms=2 * ttl_ms)
        assert waited.error == refused(name), "nobody gets it while its holder lives"
        assert one.ask("release", key=key, hold="1").type == "ok"
        assert two.ask("acquire", key=key, hold="3", ttl_ms=ttl_ms, timeout_ms=9000).type == "ok"


@pytest.mark.live
@pytest.mark.parametrize("name", [n for n in RIGHT if LIBRARIES.load(n).fencing])
def test_tokens_grow_across_clients(name: str, redis_: RedisServer, tmp_path: Path) -> None:
    with opened(name, redis_, tmp_path) as one, opened(name, redis_, tmp_path) as two:
        tokens = []
        for number in range(5):
            client, hold = (one, two)[number % 2], str(number)
            reply = client.ask(
                "acquire", key=f"token-{name}", hold=hold, ttl_ms=TTL_MS, timeout_ms=0
            )
            tokens.append(reply.value["token"])
            client.ask("release", key=f"token-{name}", hold=hold)
        assert tokens == sorted(set(tokens)), "strictly growing"
