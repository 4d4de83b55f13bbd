"""Environments of libraries: made once, atomically, and errors that say what to do."""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from clients import environments
from clients.libraries import REDIS_PY, Library
from harness.core.errors import HarnessError, UserError


def library(directory: Path, requirements: str, imports: tuple[str, ...] = ("json",)) -> Library:
    path = directory / "some-lock.txt"
    path.write_text(requirements)
    return Library(
        name="some-lock",
        adapter=REDIS_PY.adapter,
        requirements=path,
        imports=imports,
        backends=("redis-single",),
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lockhavoc" / "envs"


def fake_uv(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Puts a ``uv`` first on PATH, so that no network is needed."""
    path = directory / "bin" / "uv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")


MAKES_ONE = f"""
echo "$@" >> "$0.calls"
for last; do :; done
if [ "$1" = venv ]; then mkdir -p "$last/bin" && ln -s {sys.executable} "$last/bin/python"; fi
"""


def test_an_environment_is_made_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path, monkeypatch, MAKES_ONE)
    some, told = library(tmp_path, "# nothing\n"), list[str]()
    first = environments.ensure(some, progress=told.append)
    assert first.parent.parent.parent == cache
    assert first.parent.parent.name.startswith("some-lock-")
    assert first.is_symlink(), "the path must not be resolved"
    assert [text.split(":")[0] for text in told] == ["some-lock", "some-lock"]
    assert environments.ensure(some, progress=told.append) == first
    assert len(told) == 2
    calls = (tmp_path / "bin" / "uv.calls").read_text().splitlines()
    assert len(calls) == 2
    assert "--require-hashes" in calls[1]


def test_other_requirements_are_another_environment(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path, monkeypatch, MAKES_ONE)
    first = environments.ensure(library(tmp_path, "# one\n"))
    assert environments.ensure(library(tmp_path, "# two\n")) != first


def test_what_a_killed_build_left_is_built_anew(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path, monkeypatch, MAKES_ONE)
    some = library(tmp_path, "# nothing\n")
    place = environments.ensure(some).parent.parent
    (place / environments.READY).unlink()
    (place / "left-over").touch()
    told = list[str]()
    environments.ensure(some, progress=told.append)
    assert "half-made" in told[0]
    assert not (place / "left-over").exists()


def test_two_processes_at_once_build_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path, monkeypatch, MAKES_ONE)
    some, found = library(tmp_path, "# nothing\n"), list[Path]()
    threads = [
        threading.Thread(target=lambda: found.append(environments.ensure(some))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert len((tmp_path / "bin" / "uv.calls").read_text().splitlines()) == 2


def test_a_failed_install_shows_the_last_words_and_the_fix(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path, monkeypatch, "echo uv has no network; exit 2")
    some = library(tmp_path, "no hash at all\n")  # pip refuses the file before it asks anybody
    told = list[str]()
    with pytest.raises(HarnessError) as caught:
        environments.ensure(some, progress=told.append)
    message = str(caught.value)
    assert "cannot make the environment of library 'some-lock'" in message
    assert "no hash at all" in message
    assert "python -m clients.environments some-lock" in message
    assert any("uv failed" in text and "uv has no network" in text for text in told)
    # Nothing that could be taken for an environment is left.
    assert not any((place / environments.READY).exists() for place in cache.iterdir())


def test_an_environment_without_the_library_is_not_ready(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv(tmp_path, monkeypatch, MAKES_ONE)
    with pytest.raises(HarnessError, match="`import no_such_library` fails"):
        environments.ensure(library(tmp_path, "# nothing\n", imports=("no_such_library",)))


def test_a_named_interpreter_is_used_as_it_is(tmp_path: Path, cache: Path) -> None:
    link = tmp_path / "python-of-mine"
    link.symlink_to(sys.executable)
    some = library(tmp_path, "# nothing\n")
    assert environments.ensure(some, python=link) == link
    assert not cache.exists()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "there is no such file"),
        (lambda path: path.write_text("text"), "it cannot be executed"),
        (lambda path: path.symlink_to(sys.executable), "No module named 'no_such_library'"),
    ],
    ids=["missing", "not executable", "without the library"],
)
def test_a_named_interpreter_that_cannot_run_it_is_refused(
    tmp_path: Path, make: object, says: str
) -> None:
    path = tmp_path / "python-of-mine"
    make(path)  # type: ignore[operator]  # a lambda of the table above
    some = library(tmp_path, "# nothing\n", imports=("no_such_library",))
    with pytest.raises(UserError) as caught:
        environments.ensure(some, python=path)
    assert "client.python is" in str(caught.value)
    assert says in str(caught.value)


def test_the_cache_follows_the_users_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert environments.cache_dir() == Path("/somewhere/lockhavoc/envs")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert environments.cache_dir() == Path("/home/me/.cache/lockhavoc/envs")


@pytest.mark.live
@pytest.mark.slow
def test_the_locked_file_of_redis_py_installs(tmp_path: Path, cache: Path) -> None:
    python = environments.ensure(REDIS_PY)
    assert environments.ensure(REDIS_PY, python=python) == python
