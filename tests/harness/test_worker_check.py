"""``worker check`` passes what is right and names what is wrong, each fault at its own point."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from tests.clients.test_worker_page import blocks
from tests.live.command import require


def check(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, dict[str, Any]]:
    """Exit code and document of ``worker check --json WORDS``."""
    monkeypatch.setattr(sys, "argv", ["lockhavoc", "worker", "check", "--json", "-q", *words])
    code = cli._run()
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def perl(tmp_path: Path) -> list[str]:
    """Arguments that examine the worker of the protocol page, which is then changed in place."""
    found = shutil.which("perl")
    if found is None or subprocess.run([found, "-MJSON::PP", "-e1"], check=False).returncode:
        pytest.skip("no perl with JSON::PP here")
    (text,) = blocks("perl")
    (tmp_path / "worker.pl").write_text(text)
    (tmp_path / "locks").mkdir()
    options = ["--backend", "none", "--option", f"dir={tmp_path / 'locks'}"]
    return [*options, "--", found, str(tmp_path / "worker.pl")]


def test_the_worker_of_the_page_passes(
    perl: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, found = check(capsys, monkeypatch, *perl)
    assert (code, found["failed"]) == (0, 0), [
        p for p in found["points"] if p["outcome"] == "failed"
    ]
    assert found["passed"] >= 20
    assert all(point["why"] for point in found["points"] if point["outcome"] == "skipped")


LIES = [  # what is changed in the worker of the page, and the point that must see it
    ("protocol => 1", "protocol => 2", "hello"),
    ("return (fail => 'unknown options", "0 and return (fail => 'unknown options", "open.option"),
    ("(fail => 'do is unknown')", "('ok')", "wrong.do"),
    ("complete => now()", "complete => now() + 1e15", "acquire"),
    ("1e9) }", "1e6) }", "acquire"),
    ("LOCK_EX | LOCK_NB", "LOCK_SH | LOCK_NB", "acquire.held"),
    ("(fail => 'busy')", "(fail => 'stale')", "acquire.held"),
    ("(fail => 'busy')", "(info => 'busy')", "acquire.held"),
    ('owner => "$$/$r->{hold}"', "owner => undef", "acquire"),
    ('"$$/$r->{hold}", token => undef', '"$$/$r->{hold}", token => 3', "acquire"),
    ("$r->{timeout_ms} // 0", "0", "acquire.wait"),
    ("or return (fail => 'hold has no grant in this worker')", "or return ('ok')", "release"),
    ("'hold has no grant in this worker'", "'not-held'", "release.unknown"),
    ("$SIG{INT} = 'IGNORE';", "", "interrupt"),
    ("exit 0 if stdin_ended();", "", "end.stuck"),
    ("sub { exit 0 }", "sub { exit 7 }", "terminate"),
    ("say_line(\\%reply);", "print qq(hello from a library\\n); say_line(\\%reply);", "acquire"),
    ("say_line(\\%reply);", "$reply{took} = 1; say_line(\\%reply);", "acquire"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "lie", "point"), LIES)
def test_each_lie_is_found_at_its_point(
    right: str, lie: str, point: str, perl: list[str],
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    script = Path(perl[-1])
    text = script.read_text()
    assert right in text
    script.write_text(text.replace(right, lie))
    code, found = check(capsys, monkeypatch, "--only", point, *perl)
    failed = {one["name"]: one for one in found["points"] if one["outcome"] == "failed"}
    assert code == 1
    assert failed[point]["why"]
    assert failed[point]["said"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "worker check needs the worker's command after --"),
        (["--library", "redis-py", "--", "x"], "not both"),
        (["--library", "redis-pie"], "redis-py"),
        (["--option", "dir", "--", "x"], "of the form name=value"),
        (["--only", "opne", "--", "x"], "--only is 'opne'; it must be one of hello, open.first"),
        (["--backend", "none", "--", "/no/such/worker"], "'/no/such/worker', which cannot be"),
        (["--backend", "zookeeper3", "--", "true"], "cannot run here"),
    ],
)
def test_what_is_asked_wrongly_is_refused(
    words: list[str], says: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["lockhavoc", "worker", "check", "-q", *words])
    monkeypatch.setenv("LOCKHAVOC_ZOOKEEPER", "/nowhere")
    assert cli._run() == 254
    captured = capsys.readouterr()
    assert says in captured.err
    assert not captured.out


@pytest.mark.live
def test_a_python_worker_passes_on_a_real_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("process")
    quick = ["--ttl-ms", "400", "--option", "socket_timeout_ms=700"]
    code, found = check(capsys, monkeypatch, "--library", "redis-py", *quick)
    assert code == 0, [p for p in found["points"] if p["outcome"] == "failed"]
    assert {p["name"] for p in found["points"] if p["outcome"] == "skipped"} == {
        "wrong.power", "wrong.kind", "token", "read", "permits",
    }  # fmt: skip


@pytest.mark.live
def test_a_broken_library_is_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that releases what it lost to another: the worker is right, its answers are not."""
    require("process")
    words = ["--library", "broken-release-without-check", "--ttl-ms", "400"]
    code, found = check(capsys, monkeypatch, *words, "--only", "lease.end", "--only", "slow")
    outcomes = {point["name"]: point["outcome"] for point in found["points"]}
    assert (code, outcomes["lease.end"], outcomes["slow"]) == (1, "failed", "passed")
