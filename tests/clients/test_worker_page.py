"""docs/reference/worker-protocol.md is true: its examples decode, its Perl worker works."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from clients.worker.session import Session
from harness.core.history import OBSERVATIONS
from harness.core.messages import Request
from tests.clients.workers import strict, worker

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "worker-protocol.md").read_text()


class StrictRequest(Request, forbid_unknown_fields=True):
    """The same record, which refuses a field that a worker would not know."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def examples(arrow: str) -> list[str]:
    lines = [line for block in blocks("json") for line in block.splitlines()]
    assert all(line.startswith(("-> ", "<- ")) for line in lines)
    return [line[3:] for line in lines if line.startswith(arrow)]


def test_every_request_has_an_example_that_decodes() -> None:
    found = {msgspec.json.decode(line, type=StrictRequest).do for line in examples("->")}
    session = Session(object(), lambda event: None)
    assert found == set(session._does)


def test_every_reply_has_an_example_that_decodes() -> None:
    replies = [strict(line.encode()) for line in examples("<-")]
    assert {reply.event for reply in replies} == {"", "hello", "lost", "log"}
    assert {reply.type for reply in replies if not reply.event} == {"ok", "fail", "info"}
    assert {reply.error for reply in replies} >= OBSERVATIONS


def test_the_options_of_redis_py_are_all_there() -> None:
    common = pytest.importorskip("clients.adapters.redis_common")
    table = PAGE.split("### redis-py")[1].split("## ")[0]
    for name in common.Options._fields:
        assert f"`{name}`" in table


def test_the_worker_in_perl_works(tmp_path: Path) -> None:
    perl = shutil.which("perl")
    if perl is None or subprocess.run([perl, "-MJSON::PP", "-e1"], check=False).returncode:
        pytest.skip("no perl with JSON::PP here")
    (script,) = blocks("perl")
    path = tmp_path / "worker.pl"
    path.write_text(script)
    argv = [perl, str(path)]
    with worker(argv, tmp_path) as one, worker(argv, tmp_path) as two:
        assert one.hello["protocol"] == 1
        assert "unknown options: x" in (one.open(options={"dir": "/", "x": 1}).error or "")
        for client in (one, two):
            assert client.open(options={"dir": str(tmp_path)}).type == "ok"
        got = one.ask("acquire", key="k", hold="0-1", ttl_ms=1000, timeout_ms=0)
        assert (got.type, got.value["token"]) == ("ok", None)
        assert two.ask("acquire", key="k", hold="1-1", timeout_ms=20).error == "busy"
        two.send("acquire", key="k", hold="1-2", timeout_ms=20_000)
        assert one.ask("release", key="k", hold="0-1").type == "ok"
        assert two.receive().type == "ok"
        assert one.ask("release", key="k", hold="0-1").type == "fail"
        assert one.ask("explode").type == "fail"
        one.send_line(b"nonsense\n")
        assert one.receive().event == "log"
        assert one.end() == 0
        # The lease is the process: when it is killed, the lock is free.
        two.process.kill()
        with worker(argv, tmp_path) as three:
            three.open(options={"dir": str(tmp_path)})
            assert three.ask("acquire", key="k", hold="2-1", timeout_ms=20_000).type == "ok"
