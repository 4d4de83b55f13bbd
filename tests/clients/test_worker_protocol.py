"""The worker as the harness sees it: a process, lines in, lines out, and a clean end."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from clients.libraries import ROOM, WORKER
from tests.clients.workers import LIMIT_S, adapter_argv, worker

PLAIN = "pass\n"


def test_hello_says_what_the_harness_must_know(tmp_path: Path) -> None:
    body = """
    fenced = True
    distributions = ("msgspec",)
    def renew(self, grant, ttl_ms): pass
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        said = client.hello
    assert said["protocol"] == 1
    assert said["library"] == "in-test"
    assert said["lease"] == {"kind": "ttl", "ttl_ms": None}
    assert said["powers"] == ["renew", "fenced"]
    assert set(said["versions"]) == {"msgspec"}
    assert said["python"] == ".".join(map(str, sys.version_info[:3]))


def test_a_lock_is_acquired_released_and_acquired_again(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, PLAIN), tmp_path) as client:
        assert client.open().type == "ok"
        got = client.ask("acquire", key="k", hold="0-1", ttl_ms=1000, timeout_ms=100)
        assert (got.type, got.value) == ("ok", {"owner": "owner of k", "token": 7})
        assert client.ask("release", key="k", hold="0-1").type == "ok"
        assert client.ask("acquire", key="k", hold="0-2").type == "ok"
        assert client.end() == 0


def test_adapter_arguments_and_options_arrive(tmp_path: Path) -> None:
    body = """
    def acquire(self, key, ttl_ms, timeout_ms):
        return Grant(json.dumps([self.args, self.options, ttl_ms, timeout_ms]))
    """
    argv = adapter_argv(tmp_path, body, "--adapter-arg", "kind=a=b", "--adapter-arg", "n=1")
    with worker(argv, tmp_path) as client:
        client.open(options={"sleep_ms": 3})
        got = client.ask("acquire", key="k", hold="h", ttl_ms=5, timeout_ms=6)
    assert json.loads(got.value["owner"]) == [{"kind": "a=b", "n": "1"}, {"sleep_ms": 3}, 5, 6]


NO_REQUESTS = [b"nonsense", b"[1]", b"{}", b'{"id":"1"}', b'{"id":true}', b'{"id":0}', b"\xff"]


def test_a_line_that_is_no_request_is_named_and_skipped(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, PLAIN), tmp_path) as client:
        for line in NO_REQUESTS:
            client.send_line(line + b"\n")
            told = client.receive()
            assert (told.event, told.id) == ("log", 0)
            assert "ignored a line" in (told.error or "")
        client.send_line(b"\n \n")  # blank lines are nothing at all
        assert client.open().type == "ok"


@pytest.mark.parametrize("kind", ["", "async "], ids=["blocking", "asyncio"])
def test_a_line_without_end_stops_the_worker(tmp_path: Path, kind: str) -> None:
    with worker(adapter_argv(tmp_path, f"{kind}def close(self): pass"), tmp_path) as client:
        with contextlib.suppress(BrokenPipeError):
            for _ in range(40):
                client.send_line(b"x" * (1 << 15))
        told = client.receive()
        assert (told.event, "longer than 1048576 bytes" in (told.error or "")) == ("log", True)
        assert client.process.wait(LIMIT_S) == 1


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("explode", {}, "do is 'explode'; it must be one of open, acquire, release"),
    ("open", {}, "is open already"),
    ("acquire", {"hold": "h"}, "key is missing"),
    ("acquire", {"key": "k"}, "hold is missing"),
    ("acquire", {"key": "k", "hold": "h", "ttl_ms": "5"}, "ttl_ms is '5'; it must be int"),
    ("acquire", {"key": "k", "hold": "h", "ttl_ms": True}, "ttl_ms is True; it must be int"),
    ("release", {"hold": "h"}, "hold is 'h', which has no grant in this worker"),
    ("renew", {"hold": "h"}, "do is 'renew', which in-test cannot do"),
    ("believes", {"hold": "h"}, "do is 'believes', which in-test cannot say"),
    ("write", {"key": "k"}, "open named no resource"),
]


def test_a_wrong_request_is_a_fail_that_names_the_field(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, PLAIN), tmp_path) as client:
        client.open()
        for do, fields, says in WRONG:
            reply = client.ask(do, **fields)
            assert reply.type == "fail"
            assert says in (reply.error or "")


def test_nothing_but_open_works_before_open_and_after_close(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, PLAIN), tmp_path) as client:
        assert "send open first" in (client.ask("acquire", key="k", hold="h").error or "")
        client.open()
        client.ask("acquire", key="k", hold="h")
        assert client.ask("close").type == "ok"
        assert "send open first" in (client.ask("release", hold="h").error or "")
        assert client.open().type == "ok"
        # Grants belong to a session: the new one knows nothing of the old.
        assert "no grant" in (client.ask("release", hold="h").error or "")


def test_a_hold_is_granted_once(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, PLAIN), tmp_path) as client:
        client.open()
        client.ask("acquire", key="k", hold="h")
        assert "holds must be fresh" in (client.ask("acquire", key="k", hold="h").error or "")


def test_requests_that_arrive_together_are_answered_in_order(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, PLAIN), tmp_path) as client:
        client.open()
        numbers = [client.send("acquire", key="k", hold=str(n)) for n in range(50)]
        assert [client.receive().id for _ in numbers] == numbers


def test_what_the_library_prints_or_reads_does_not_touch_the_protocol(tmp_path: Path) -> None:
    body = """
    def acquire(self, key, ttl_ms, timeout_ms):
        print("printed by the library", flush=True)
        os.write(1, b"written by a C extension\\n")
        os.system("echo printed by a child")
        assert sys.stdin.read() == "" and os.read(0, 10) == b""
        return Grant("o")
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        client.send_line(b"")
        assert client.ask("acquire", key="k", hold="h").type == "ok"
        assert client.ask("release", key="k", hold="h").type == "ok"
        log = client.log()
    for words in ("printed by the library", "written by a C extension", "printed by a child"):
        assert words in log


def test_an_adapter_that_cannot_be_loaded_says_so_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("import no_such_library\n")
    argv = [sys.executable, "-u", str(WORKER), "--adapter", str(path)]
    with worker(argv, tmp_path, hello=False) as client:
        told = client.receive()
        assert told.event == "log"
        assert "No module named 'no_such_library'" in (told.error or "")
        assert client.process.wait(LIMIT_S) == 3


STUCK = """
    def acquire(self, key, ttl_ms, timeout_ms):
        while True:
            try:
                time.sleep(3600)
            except BaseException as error:
                print("swallowed", type(error).__name__, flush=True)
    """


@pytest.mark.parametrize("body", [PLAIN, STUCK], ids=["idle", "stuck in the library"])
@pytest.mark.parametrize("how", ["eof", "sigterm"])
def test_the_worker_ends_with_the_harness(tmp_path: Path, body: str, how: str) -> None:
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        if body is STUCK:
            client.send("acquire", key="k", hold="h")
        if how == "sigterm":
            client.process.send_signal(signal.SIGTERM)
            assert client.process.wait(LIMIT_S) == 0
        else:
            assert client.end() == 0


@pytest.mark.parametrize("kind", ["", "async "])
@pytest.mark.parametrize("how", ["eof", "sigterm"])
def test_the_client_is_closed_before_the_worker_ends(tmp_path: Path, how: str, kind: str) -> None:
    body = f"""
    {kind}def close(self): print("closed in order", flush=True)
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        if how == "sigterm":
            client.process.send_signal(signal.SIGTERM)
            assert client.process.wait(LIMIT_S) == 0
        else:
            assert client.end() == 0
        assert "closed in order" in client.log()


def test_ctrl_c_in_the_terminal_does_not_reach_the_library(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, PLAIN), tmp_path) as client:
        client.open()
        client.process.send_signal(signal.SIGINT)
        assert client.ask("acquire", key="k", hold="h").type == "ok"


def test_threads_of_the_library_do_not_keep_the_worker_alive(tmp_path: Path) -> None:
    body = """
    def open(self, nodes, options):
        threading.Thread(target=time.sleep, args=(3600,)).start()
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        assert client.end() == 0


def test_a_stopped_worker_takes_its_request_when_it_goes_on(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, PLAIN), tmp_path) as client:
        client.open()
        os.kill(client.process.pid, signal.SIGSTOP)
        _, status = os.waitpid(client.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        resumed_after = time.monotonic_ns()
        client.send("acquire", key="k", hold="h")
        os.kill(client.process.pid, signal.SIGCONT)
        reply = client.receive()
        assert (reply.type, reply.invoke > resumed_after) == ("ok", True)


def test_the_target_does_not_see_the_harness_or_our_file_names(tmp_path: Path) -> None:
    body = """
    def acquire(self, key, ttl_ms, timeout_ms):
        found = []
        for name in ("harness", "channel", "session", "checkers", "tests"):
            try:
                __import__(name)
                found.append(name)
            except ImportError:
                pass
        return Grant(",".join(found))
    """
    argv = adapter_argv(tmp_path, body)
    argv.insert(1, "-S")  # without site-packages, where the harness may be installed
    with worker(argv, tmp_path) as client:
        client.open()
        assert client.ask("acquire", key="k", hold="h").value["owner"] == ""


@pytest.mark.parametrize("folder", ["worker", "adapters"])
def test_foreign_files_can_be_read_by_python_3_8(folder: str) -> None:
    for path in sorted((ROOM / folder).glob("*.py")):
        ast.parse(path.read_text(), filename=str(path), feature_version=(3, 8))
