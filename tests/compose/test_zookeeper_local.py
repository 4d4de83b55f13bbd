"""ZooKeeper as local processes: which Java and which jars, and what is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from compose.backends import zookeeper_local
from compose.backends.spec import LocalPlace
from compose.backends.zookeeper_local import JAVA_FLAGS, SETTINGS, VARIABLE, ZOOKEEPER_LOCAL, fetch
from compose.binary import Binary
from compose.docker_compose import FILES
from compose.registry import BACKENDS
from harness.core.errors import HarnessError, RefusedError
from tests.compose.test_process_servers import program

JAVA_17 = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"
JAR = "zookeeper-7.8.9.jar"
INTO = 'for a; do case $a in -DoutputDirectory=*) d=${a#*=};; esac; done; /bin/mkdir -p "$d"\n'


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing but a Java, an empty cache, and one small jar that is wanted."""
    path = tmp_path / "bin"
    path.mkdir()
    program(path / "java", JAVA_17)
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    digests = tmp_path / "jars.sha256"
    digests.write_text(f"{hashlib.sha256(b'good').hexdigest()}  {JAR}\n")
    monkeypatch.setattr(zookeeper_local, "_DIGESTS", digests)
    return path


def maven(bare: Path, content: str) -> Path:
    """A ``mvn`` that brings the jar with that content, and counts its calls."""
    count = bare / "count"
    program(bare / "mvn", f'{INTO}printf {content} > "$d/{JAR}"; echo called >> {count}')
    return count


def test_jars_are_fetched_once_and_found_in_the_cache(bare: Path, tmp_path: Path) -> None:
    count = maven(bare, "good")
    assert ZOOKEEPER_LOCAL.find()["jars"].origin == "fetched by Maven at the first run"
    fetch()
    fetch()
    assert count.read_text() == "called\n"
    found = ZOOKEEPER_LOCAL.find()["jars"]
    assert (found.version, found.origin) == ("7.8.9", "cache")
    assert {path.name for path in found.path.iterdir()} == {JAR}
    assert {path.name for path in found.path.parent.iterdir()} == {"build.lock", found.path.name}


def test_a_jar_of_another_content_is_not_kept(bare: Path, tmp_path: Path) -> None:
    maven(bare, "evil")
    with pytest.raises(HarnessError, match=f"not what jars.sha256 beside it lists: {JAR}"):
        fetch()
    assert [path.name for path in (tmp_path / "cache/lockhavoc/jars").iterdir()] == ["build.lock"]


def test_a_maven_that_fails_is_quoted(bare: Path) -> None:
    program(bare / "mvn", "echo no route to the repository; exit 3")
    with pytest.raises(HarnessError, match=r"(?s)exit status 3.*no route to the repository.*Fix"):
        fetch()


def test_without_jars_and_maven_it_is_refused_with_two_ways_out(bare: Path) -> None:
    with pytest.raises(RefusedError, match=rf"no mvn on PATH.*apt-get install maven.*{VARIABLE}"):
        ZOOKEEPER_LOCAL.find()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('openjdk version "1.8.0_392"', "is Java 8.0_392; needed is 11 or later"),
        ("hello", "is no Java"),
    ],
)
def test_a_java_that_will_not_do_is_named(bare: Path, said: str, expected: str) -> None:
    program(bare / "java", f"echo '{said}' >&2")
    with pytest.raises((RefusedError, HarnessError), match=expected):
        ZOOKEEPER_LOCAL.find()


def test_an_unpacked_release_serves_instead(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib = tmp_path / "release" / "lib"
    lib.mkdir(parents=True)
    monkeypatch.setenv(VARIABLE, str(lib.parent))
    with pytest.raises(RefusedError, match=r"holds no lib/zookeeper-VERSION\.jar"):
        ZOOKEEPER_LOCAL.find()
    for name in ("zookeeper-3.8.4.jar", "zookeeper-jute-3.8.4.jar"):
        (lib / name).touch()
    fetch()  # nothing to fetch, and nobody to do it
    found = ZOOKEEPER_LOCAL.find()["jars"]
    assert (found.path, found.version, found.origin) == (lib, "3.8.4", VARIABLE)


def test_it_is_configured_as_in_containers() -> None:
    text = (FILES / BACKENDS.load("zookeeper3").compose_file).read_text()
    for setting in (*JAVA_FLAGS, *(f"{key}={value}" for key, value in SETTINGS.items())):
        assert setting in text, setting
    names, purposes = ("zk1", "zk2", "zk3"), ("client", "replication", "election")
    place = LocalPlace(
        ports={
            name: {purpose: 100 * number + i for i, purpose in enumerate(purposes)}
            for number, name in enumerate(names, 1)
        },
        data={name: Path("/data") / name for name in names},
        options={"tick_ms": "250"},
        binaries={
            "java": Binary("java", Path("/j/java"), "17", "PATH"),
            "jars": Binary("zookeeper", Path("/jars"), "3.9.5", "cache"),
        },
    )
    made = ZOOKEEPER_LOCAL.program("zk2", place)
    assert made.files["myid"] == "2\n"
    lines = made.files["zoo.cfg"].splitlines()
    assert {"clientPort=200", "clientPortAddress=127.0.0.1", "tickTime=250"} <= set(lines)
    assert {f"server.{n}=127.0.0.1:{n}01:{n}02" for n in (1, 2, 3)} <= set(lines)
    assert "/jars/*" in made.argv
    assert os.sep + "j/java" in made.argv
