"""Specs of backends: options are settled or refused, all problems at once."""

from __future__ import annotations

import pytest

from compose.backends.spec import BackendSpec
from compose.docker_compose import FILES
from compose.docker_images import IMAGES
from compose.registry import BACKENDS
from harness.core.errors import UserError


@pytest.mark.parametrize("name", BACKENDS.names())
def test_spec_is_whole(name: str) -> None:
    spec: BackendSpec = BACKENDS.load(name)
    assert spec.name == name
    assert (FILES / spec.compose_file).is_file()
    assert (IMAGES / spec.image / "Dockerfile").is_file()
    assert spec.nodes
    assert spec.local or spec.local_refused
    assert spec.releases
    assert not set(spec.releases) & set(spec.releases_refused)


@pytest.mark.parametrize("name", BACKENDS.names())
@pytest.mark.parametrize("runtime", ["docker", "process"])
def test_defaults_are_settled(name: str, runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELEASE", raising=False)
    spec: BackendSpec = BACKENDS.load(name)
    settled = spec.settle({}, runtime=runtime)
    for option, value in settled.items():
        assert value in (spec.options[option].choices or (value,))
    assert settled.get("release") == ("trixie" if runtime == "docker" else None)


def test_all_problems_are_listed_with_hints() -> None:
    wrong = {"persistense": "aof", "persistence": "aoff", "release": 12, "imag": "x", "image": 1}
    with pytest.raises(UserError) as caught:
        BACKENDS.load("redis-single").settle(wrong, runtime="docker")
    problems = caught.value.problems
    assert len(problems) == 5
    assert "did you mean 'persistence'" in problems[0]
    assert "did you mean 'aof'" in problems[1]
    assert "release = 12" in problems[2]


def test_an_option_without_meaning_in_a_runtime_is_refused() -> None:
    with pytest.raises(UserError, match="means nothing in the process runtime"):
        BACKENDS.load("redis-single").settle({"release": "trixie"}, runtime="process")


def test_release_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEASE", "bookworm")
    spec = BACKENDS.load("redis-single")
    assert spec.settle({}, runtime="docker")["release"] == "bookworm"
    assert spec.settle({"release": "trixie"}, runtime="docker")["release"] == "trixie"
    assert "release" not in spec.settle({}, runtime="process")
    monkeypatch.setenv("RELEASE", "wheezy")
    with pytest.raises(UserError, match="RELEASE='wheezy' is not one of trixie, bookworm"):
        spec.settle({}, runtime="docker")


def test_valkey_on_bookworm_is_refused_with_the_reason() -> None:
    spec = BACKENDS.load("valkey-single")
    with pytest.raises(UserError, match="bookworm has no valkey package"):
        spec.settle({"release": "bookworm"}, runtime="docker")
    given = {"release": "bookworm", "image": "docker.io/valkey/valkey:8.1"}
    assert spec.settle(given, runtime="docker")["image"] == given["image"]


def test_persistence_reaches_the_server() -> None:
    spec = BACKENDS.load("redis-single")
    for persistence, wanted in [("aof", "yes"), ("none", "no")]:
        args = list(spec.server_args({"persistence": persistence}))
        assert args[args.index("--save") + 1] == "", "a snapshot at shutdown would bring data back"
        assert args[args.index("--appendonly") + 1] == wanted
