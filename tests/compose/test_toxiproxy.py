"""The Toxiproxy client against real servers."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compose.toxiproxy import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    ToxiproxyClient,
    ToxiproxyError,
    UnreachableError,
)
from harness.core.errors import HarnessError
from tests.compose.local import toxiproxy_up

UPSTREAM = "127.0.0.1:1"  # nobody listens there; these tests look at the API alone


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ToxiproxyClient]:
    with toxiproxy_up(tmp_path, f"test-{os.getpid()}-{tmp_path.name}") as (client, _):
        yield client


def proxy(name: str, listen: str = "127.0.0.1:0") -> dict[str, Any]:
    return {"name": name, "listen": listen, "upstream": UPSTREAM}


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:8474", "https://127.0.0.1:8474", "http://127.0.0.1", "127.0.0.1:8474"]
)
def test_only_this_machine_may_be_called(url: str) -> None:
    with pytest.raises(HarnessError, match="on this machine"):
        ToxiproxyClient(url)


@pytest.mark.live
def test_populate_gives_real_ports_and_lists_them(api: ToxiproxyClient) -> None:
    made = api.populate([proxy("a"), proxy("b")])
    assert [one["name"] for one in made] == ["a", "b"]
    assert all(int(one["listen"].rpartition(":")[2]) > 0 for one in made)
    listed = api.proxies()
    assert {name: one["listen"] for name, one in listed.items()} == {
        one["name"]: one["listen"] for one in made
    }
    api.delete("a")
    assert list(api.proxies()) == ["b"]


@pytest.mark.live
def test_each_error_has_its_type_and_names_the_call(api: ToxiproxyClient) -> None:
    api.populate([proxy("a")])
    with pytest.raises(NotFoundError, match=r"GET /proxies/none: proxy not found"):
        api.proxy("none")
    with pytest.raises(NotFoundError):
        api.delete_toxic("a", "latency-upstream")
    api.add_toxic("a", kind="latency", stream="upstream", attributes={"latency": 1})
    with pytest.raises(ConflictError):
        api.add_toxic("a", kind="latency", stream="upstream", attributes={"latency": 1})
    with pytest.raises(BadRequestError):
        api.add_toxic("a", kind="no-such-kind", stream="upstream", attributes={})
    with pytest.raises(BadRequestError):
        api.add_toxic("a", kind="latency", stream="sideways", attributes={})


@pytest.mark.live
def test_a_port_in_use_is_an_error_with_the_reason(api: ToxiproxyClient) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ToxiproxyError, match="address already in use") as caught:
            api.populate([proxy("a", listen)])
    assert caught.value.status == 500


@pytest.mark.live
def test_toxics_are_added_changed_and_removed(api: ToxiproxyClient) -> None:
    api.populate([proxy("a")])
    made = api.add_toxic("a", kind="latency", stream="downstream", attributes={"latency": 5})
    assert made["name"] == "latency-downstream"
    api.patch_toxic("a", made["name"], {"latency": 7})
    (toxic,) = api.toxics("a")
    assert (toxic["type"], toxic["stream"], toxic["toxicity"]) == ("latency", "downstream", 1)
    assert toxic["attributes"]["latency"] == 7
    api.delete_toxic("a", made["name"])
    assert api.toxics("a") == []


@pytest.mark.live
def test_disable_enable_and_reset(api: ToxiproxyClient) -> None:
    host, port = api.populate([proxy("a")])[0]["listen"].split(":")
    api.set_enabled("a", False)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=1)
    api.add_toxic("a", kind="timeout", stream="upstream", attributes={"timeout": 0})
    api.reset()
    state = api.proxy("a")
    assert state["enabled"]
    assert state["toxics"] == []
    socket.create_connection((host, int(port)), timeout=1).close()


@pytest.mark.live
def test_several_servers_at_once(tmp_path: Path, api: ToxiproxyClient) -> None:
    with toxiproxy_up(tmp_path, f"test-{os.getpid()}-second") as (second, _):
        api.populate([proxy("only-in-the-first")])
        assert second.proxies() == {}
        assert list(api.proxies()) == ["only-in-the-first"]


@pytest.mark.live
def test_a_stopped_server_is_unreachable_in_time(tmp_path: Path) -> None:
    with toxiproxy_up(tmp_path, f"test-{os.getpid()}-stopped") as (api, server):
        os.kill(server.pid, signal.SIGSTOP)
        impatient = ToxiproxyClient(api.base_url, timeout_s=0.2)
        before = time.monotonic()
        with pytest.raises(UnreachableError, match="timed out"):
            impatient.version()
        assert time.monotonic() - before < 2
        server.kill()
        with pytest.raises(UnreachableError, match="refused"):
            impatient.version()


@pytest.mark.live
def test_a_proxy_of_the_environment_is_not_used(
    api: ToxiproxyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert api.version() == "2.12.0"


@pytest.mark.live
def test_random_jitter_is_refused(api: ToxiproxyClient) -> None:
    api.populate([proxy("a")])
    with pytest.raises(HarnessError, match="jitter"):
        api.add_toxic("a", kind="latency", stream="upstream", attributes={"jitter": 3})
    assert api.toxics("a") == []
