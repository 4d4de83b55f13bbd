"""The protected resource as a process: sockets, order, restarts, and the worker that writes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.resource.export import records
from clients.resource.process import ResourceProcess
from clients.worker.resource_client import LostReply, NotSent, ResourceClient
from harness.core.errors import HarnessError
from tests.clients.workers import LIMIT_S, adapter_argv, worker


@contextlib.contextmanager
def served(directory: Path, mode: str) -> Iterator[tuple[ResourceProcess, ResourceClient]]:
    with ResourceProcess.start(directory, mode) as resource:
        client = ResourceClient(**resource.place())
        try:
            yield resource, client
        finally:
            client.close()


def write(client: ResourceClient, key: str = "k", **fields: Any) -> dict[str, Any]:
    return client.ask({"do": "write", "key": key, **fields})


def test_fenced_refuses_a_late_writer_also_after_it_was_killed(tmp_path: Path) -> None:
    with served(tmp_path, "fenced") as (resource, client):
        assert write(client, token=2, value="new")["ok"]
        resource.kill()
        resource.restart()
        late = write(client, token=1, value="old")
        assert (late["ok"], late["why"], late["highest"]) == (False, "stale", 2)
        assert write(client, value="no token")["why"] == "no-token"
        assert client.ask({"do": "read", "key": "k"})["value"] == "new"
    assert [r.accepted for r in records(tmp_path)] == [True, False, False]


def test_cas_accepts_only_the_version_last_read(tmp_path: Path) -> None:
    with served(tmp_path, "cas") as (_, client):
        assert client.ask({"do": "read", "key": "k"})["version"] == 0
        assert write(client, expect=0)["version"] == 1
        assert write(client, expect=0)["why"] == "mismatch"
        assert write(client)["why"] == "no-expect"
        assert write(client, expect=1)["ok"]


def test_unfenced_accepts_everything_in_order_of_arrival(tmp_path: Path) -> None:
    with served(tmp_path, "unfenced") as (_, client):
        for token in (3, 1, None):
            assert write(client, token=token, hold="h", value=token)["ok"]
        log = client.ask({"do": "log"})
    assert [(r["seq"], r["token"]) for r in log["records"]] == [(1, 3), (2, 1), (3, None)]
    assert log["next"] is None


def test_the_log_comes_in_pages(tmp_path: Path) -> None:
    with served(tmp_path, "unfenced") as (_, client):
        for number in range(5):
            write(client, value=number)
        first = client.ask({"do": "log", "limit": 3})
        second = client.ask({"do": "log", "after": first["next"], "limit": 3})
    assert [r["value"] for r in first["records"] + second["records"]] == [0, 1, 2, 3, 4]
    assert (first["next"], second["next"]) == (3, None)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"do": "explode"}, "Invalid enum value"),
        ({"do": "write"}, "key is missing"),
        ({"do": "write", "key": "k", "token": "7"}, "Expected `int | null`"),
        ({"do": "write", "key": "k", "token": True}, "Expected `int | null`"),
        ({"do": "write", "key": "k", "token": -1}, "token is -1; it must be from 0"),
        ({"do": "write", "key": "k", "token": 2**63}, "token"),
        ({"do": "log", "limit": 0}, "limit is 0; it must be from 1"),
    ],
)
def test_a_malformed_request_is_refused_and_leaves_no_record(
    tmp_path: Path, message: dict[str, Any], says: str
) -> None:
    with served(tmp_path, "unfenced") as (_, client):
        reply = client.ask(message)
        assert not reply["ok"]
        assert reply["why"].startswith("malformed: ")
        assert says in reply["why"]
        assert write(client)["seq"] == 1


def test_concurrent_writers_are_serialised(tmp_path: Path) -> None:
    writers, each = 6, 60
    with served(tmp_path, "cas") as (resource, _):
        counts = [0] * writers

        def add(index: int) -> None:
            client = ResourceClient(**resource.place())
            while counts[index] < each:
                version = client.ask({"do": "read", "key": "k"})["version"]
                counts[index] += write(client, hold=str(index), expect=version)["ok"]
            client.close()

        threads = [threading.Thread(target=add, args=(index,)) for index in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client = ResourceClient(**resource.place())
        # No increment was lost and none counted twice.
        assert client.ask({"do": "read", "key": "k"})["version"] == writers * each
        client.close()
    assert sum(r.accepted for r in records(tmp_path)) == writers * each


def test_a_half_sent_write_is_no_write(tmp_path: Path) -> None:
    with served(tmp_path, "unfenced") as (resource, client):
        with socket.create_connection(("127.0.0.1", resource.port)) as torn:
            torn.sendall(b'{"id":1,"do":"write","key":"k"')
        assert write(client)["seq"] == 1


def test_a_line_without_end_is_cut_off(tmp_path: Path) -> None:
    with served(tmp_path, "unfenced") as (resource, client):
        with socket.create_connection(("127.0.0.1", resource.port), LIMIT_S) as endless:
            with contextlib.suppress(OSError):  # it may close before all is sent
                endless.sendall(b"x" * (3 << 20))
            with contextlib.suppress(ConnectionResetError):
                while endless.recv(1 << 16):
                    pass
        assert write(client)["ok"]


def test_it_ends_with_its_harness_and_listens_on_loopback_only(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "clients.resource", "--dir", str(tmp_path), "--mode", "unfenced"]
    process = subprocess.Popen(
        [*argv, "--stop-on-eof"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdin
        assert process.stdout
        said = json.loads(process.stdout.readline())
        assert (said["event"], said["host"], said["mode"]) == ("listening", "127.0.0.1", "unfenced")
        process.stdin.close()
        assert process.wait(LIMIT_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with ResourceProcess.start(tmp_path, "unfenced") as resource:
        os.kill(resource.pid, number)
        process = resource._process
        assert process is not None
        assert process.wait(LIMIT_S) == 0


def test_a_port_in_use_is_said_and_nothing_is_left_running(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(HarnessError, match=r"did not start .*in use"):
            ResourceProcess.start(tmp_path, "unfenced", port=taken.getsockname()[1])


def test_what_the_client_knows_of_a_failure(tmp_path: Path) -> None:
    with served(tmp_path, "unfenced") as (resource, client):
        assert write(client)["ok"]
        resource.kill()
        with pytest.raises(NotSent, match="cannot connect"):
            write(client)  # the closed connection is noticed before anything is sent
        resource.restart()
        assert write(client)["seq"] == 2
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        late = ResourceClient("127.0.0.1", silent.getsockname()[1], timeout_s=0.05)
        with pytest.raises(LostReply, match="timed out"):
            late.ask({"do": "write", "key": "k"})
        late.close()


@pytest.mark.parametrize("kind", ["", "async "], ids=["blocking", "asyncio"])
def test_a_worker_writes_with_its_token_and_reads_back(tmp_path: Path, kind: str) -> None:
    argv = adapter_argv(tmp_path, f"{kind}def close(self): pass")
    with (
        ResourceProcess.start(tmp_path / "fenced", "fenced") as resource,
        worker(argv, tmp_path) as client,
    ):
        client.open(resource=resource.place())
        wrote = client.ask("write", key="k", hold="h", token=2, value={"by": "h"})
        assert (wrote.type, wrote.value) == ("ok", {"version": 1, "seq": 1})
        assert client.ask("read", key="k").value == {"value": {"by": "h"}, "version": 1}
        stale = client.ask("write", key="k", hold="g", token=1)
        assert (stale.type, stale.error) == ("fail", "stale")
        assert client.ask("write", key="k", hold="g").error == "no-token"
        resource.kill()
        refused = client.ask("write", key="k", hold="h", token=2)
        assert refused.type == "fail"
        assert "cannot connect" in (refused.error or "")


def test_a_worker_writes_what_it_last_read(tmp_path: Path) -> None:
    argv = adapter_argv(tmp_path, "pass")
    with (
        ResourceProcess.start(tmp_path / "cas", "cas") as resource,
        worker(argv, tmp_path) as one,
        worker(argv, tmp_path) as two,
    ):
        for client in (one, two):
            client.open(resource=resource.place())
            client.ask("read", key="k", hold="h")
        assert one.ask("write", key="k", hold="h", value=1).type == "ok"
        assert two.ask("write", key="k", hold="h", value=2).error == "mismatch"
        assert one.ask("write", key="k", hold="h", value=3).type == "ok"
        # What another hold read does not count, and an explicit version wins.
        assert one.ask("write", key="k", hold="new", value=4).error == "no-expect"
        assert one.ask("write", key="k", hold="new", options={"expect": 2}).type == "ok"


def test_a_write_without_a_reply_is_unknown(tmp_path: Path) -> None:
    with socket.socket() as closing, worker(adapter_argv(tmp_path, "pass"), tmp_path) as client:
        closing.bind(("127.0.0.1", 0))
        closing.listen()
        place = {"host": "127.0.0.1", "port": closing.getsockname()[1]}
        client.open(resource=place)
        client.send("write", key="k", hold="h")
        connection, _ = closing.accept()
        assert connection.recv(1 << 16)
        connection.close()
        assert client.receive().type == "info"
