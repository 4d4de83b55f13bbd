"""Workers in other languages: built once, refused with the reason, examined on real servers."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clients import environments, toolchains
from clients.choice import LibraryChoice, settle
from clients.libraries import Library
from clients.other_libraries import GO_ETCD, GO_REDSYNC, JAVA_CURATOR, JAVA_REDISSON
from harness import cli
from harness.core.errors import HarnessError, RefusedError, UserError
from tests.live.command import require


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fake_go(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """The only ``go`` on PATH; what it was called with is in the file beside it."""
    path = directory / "bin" / "go"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\necho "$CGO_ENABLED $@" >> "{path}.calls"\n{script}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return path.with_name("go.calls")


BUILDS = """case $1 in build) while [ "$1" != -o ]; do shift; done; echo '#!/bin/sh' > "$2"; esac"""


def test_a_worker_is_built_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, told = fake_go(tmp_path, monkeypatch, BUILDS), list[str]()
    program = environments.ensure(GO_REDSYNC, progress=told.append)
    assert program.is_file()
    assert program.is_relative_to(cache)
    assert environments.ensure(GO_REDSYNC, progress=told.append) == program
    assert GO_REDSYNC.command(program) == [str(program)]
    builds = [line for line in calls.read_text().splitlines() if " build " in line]
    assert len(builds) == 1
    assert builds[0].startswith("0 build -trimpath -mod=readonly")
    assert builds[0].endswith("./cmd/redsync")
    assert len(told) == 2


def test_another_source_is_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_go(tmp_path, monkeypatch, BUILDS)
    for name in ("go.sum", "main.go"):
        (tmp_path / name).write_text("one\n")
    library = replace(GO_REDSYNC, adapter=tmp_path / "main.go", requirements=tmp_path / "go.sum")
    first = toolchains.place_of(library, tmp_path)
    assert toolchains.place_of(library, tmp_path) == first
    (tmp_path / "main.go").write_text("two\n")
    assert toolchains.place_of(library, tmp_path) != first


def test_what_a_failed_build_said_is_shown_and_nothing_counts(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = '[ "$1" = version ] || { echo "proxy: no such host"; exit 1; }'
    calls = fake_go(tmp_path, monkeypatch, script)
    for _ in range(2):
        with pytest.raises(HarnessError, match="proxy: no such host"):
            environments.ensure(GO_REDSYNC)
    assert calls.read_text().count(" build ") == 2


def test_without_a_toolchain_it_is_refused_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="written in Go and there is no go on PATH; install Go"):
        environments.ensure(GO_ETCD)


def test_an_interpreter_for_it_is_refused() -> None:
    with pytest.raises(UserError, match=r"client\.python is given, but library 'go-etcd"):
        environments.ensure(GO_ETCD, python="python3")


def test_a_chosen_version_is_a_build_of_its_own(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = 'case "$1 $2" in "version -m") echo "dep x.org/redsync/v4 v4.12.0 h1:A="; esac'
    calls = fake_go(tmp_path, monkeypatch, f"{BUILDS}\n{held}")
    target = settle(GO_REDSYNC, LibraryChoice(with_=("redsync@4.12.0",)))
    assert target.record["with"] == ["redsync@4.12.0"]
    assert target.record["packages"] == {"x.org/redsync/v4": "v4.12.0"}, "what the program holds"
    assert environments.ensure(GO_REDSYNC) != target.python
    said = calls.read_text()
    assert "0 get github.com/go-redsync/redsync/v4@v4.12.0\n" in said
    assert "build -trimpath -mod=mod" in said
    assert (target.python.parent / "source" / "go.mod").is_file(), "ours is left as it is"


def test_a_version_that_cannot_be_built_is_the_users(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(tmp_path, monkeypatch, '[ "$1" = version ] || { echo "unknown revision"; exit 1; }')
    with pytest.raises(UserError, match=r"(?s)redsync/v4 v4.99.0: .*unknown revision.*Name versi"):
        environments.ensure(GO_REDSYNC, chosen=["redsync@4.99.0"])
    assert not [path for path in (cache / "lockhavoc" / "envs").iterdir() if path.is_dir()]


def test_the_packages_of_a_java_worker_are_the_jars_beside_it(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    for name in ("curator-recipes-5.9.0.jar", "slf4j-nop-1.7.25.jar"):
        (tmp_path / "jars" / name).touch()
    found = toolchains.packages(JAVA_CURATOR, tmp_path / "worker")
    assert found == {"curator-recipes": "5.9.0", "slf4j-nop": "1.7.25"}


def test_another_file_of_all_java_workers_is_another_build_and_one_of_the_others_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = JAVA_CURATOR.requirements.parent.parent
    shutil.copytree(root, tmp_path / "java")
    (tmp_path / "javac").write_text("#!/bin/sh\necho 17\n")
    (tmp_path / "javac").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    jars = tmp_path / "java" / "curator" / "jars.sha256"
    library = replace(JAVA_CURATOR, requirements=jars)
    first = toolchains.place_of(library, tmp_path)
    (tmp_path / "java" / "redisson" / "pom.xml").write_text("another\n")
    assert toolchains.place_of(library, tmp_path) == first
    (tmp_path / "java" / "src" / "Worker.java").write_text("another\n")
    assert toolchains.place_of(library, tmp_path) != first


SKEWED = """
name = "go-clock"
[claim]
verdict = "holds"
[backend]
name = "redis-single"
[client]
library = "go-redsync"
[workload]
workers = 2
[[faults]]
kind = "worker-clock-jump"
target = "holder"
start_ms = 500
[run]
time_ms = 1000
"""


def run_cli(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["lockhavoc", *words])
    return (cli._run(), *capsys.readouterr())


def go_or_skip() -> None:
    reason = toolchains.missing(GO_ETCD)
    if reason:
        pytest.skip(reason)


@pytest.mark.live
def test_the_clock_of_a_go_program_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("process")
    go_or_skip()
    (tmp_path / "skewed.toml").write_text(SKEWED)
    words = ["run", str(tmp_path / "skewed.toml"), "--runtime", "process", "--store", str(tmp_path)]
    code, _, err = run_cli(words, monkeypatch, capsys)
    assert code == 254
    assert "written in Go" in err
    assert "worker-clock-jump" in err


def built_or_skip(library: Library) -> None:
    """Building these takes minutes, so they are examined where somebody has built them."""
    reason = toolchains.missing(library)
    if reason is None and not toolchains.is_ready(
        toolchains.place_of(library, environments.cache_dir())
    ):
        reason = f"not built; build it: python -m clients.environments {library.name}"
    if reason:
        pytest.skip(reason)


def examine(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """Points that did not pass: name -> outcome and why."""
    code, out, err = run_cli(["worker", "check", "-q", "--json", *words], monkeypatch, capsys)
    assert out, err
    found = json.loads(out)
    assert code == (1 if found["failed"] else 0)
    return {p["name"]: f"{p['outcome']}: {p['why']}" for p in found["points"] if p["why"]}


@pytest.mark.slow
def test_the_lock_of_etcds_go_client_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("process")
    built_or_skip(GO_ETCD)
    base = ["--library", "go-etcd-concurrency", "--option", "timeout_ms=1000", "--ttl-ms", "2000"]
    points = ["token", "lease.end", "unknown.acquire", "severed", "write.stale", "end.stuck"]
    only = [word for point in points for word in ("--only", point)]
    assert examine([*base, *only], monkeypatch, capsys) == {}
    told = examine(
        [*base, "--option", "release=unlock", "--only", "lease.end"], monkeypatch, capsys
    )
    assert told["lease.end"].startswith("failed: release of a lost lock is ok")


@pytest.mark.live
def test_redsync_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("process")
    go_or_skip()
    base = ["--library", "go-redsync", "--backend", "redis-single", "--ttl-ms", "500"]
    points = ["lease.end", "unknown.acquire", "unknown.release", "write.stale", "end.stuck"]
    only = [word for point in points for word in ("--only", point)]
    quick = ["--option", "socket_timeout_ms=500"]
    assert examine([*base, *quick, *only], monkeypatch, capsys) == {}


@pytest.mark.slow
def test_redisson_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("process")
    built_or_skip(JAVA_REDISSON)
    base = ["--library", "java-redisson", "--ttl-ms", "1500"]
    points = ["open.option", "lease.end", "unknown.acquire", "write.stale", "end.stuck"]
    only = [word for point in points for word in ("--only", point)]
    quick = ["--option", "socket_timeout_ms=1000"]
    assert examine([*base, *quick, *only], monkeypatch, capsys) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["java-curator", "java-curator-locker"])
def test_curator_passes(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("process")
    built_or_skip(JAVA_CURATOR)
    base = ["--library", name, "--backend", "zookeeper3", "--ttl-ms", "2000"]
    # Not unknown.acquire: behind a silent link Curator waits without a limit that one could set.
    points = ["open.option", "lease.end", "write.stale", "end.stuck"]
    only = [word for point in points for word in ("--only", point)]
    assert examine([*base, *only], monkeypatch, capsys) == {}


def test_jars_that_nobody_pinned_are_refused(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    copies = "for a; do case $a in -DoutputDirectory=*) d=${a#*=};; esac; done\n"
    scripts = {
        "mvn": copies + 'mkdir -p "$d"; echo evil > "$d/evil-1.jar"',
        "javac": "",
        "java": "",
    }
    for name, script in scripts.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{script}\n")
        (bin_ / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}/usr/bin{os.pathsep}/bin")
    with pytest.raises(HarnessError, match=r"not what jars.sha256 beside it lists: .*evil-1"):
        environments.ensure(JAVA_REDISSON)
