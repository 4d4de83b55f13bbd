"""Versions of libraries in Go and Java: which names are understood, what is refused and why."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from clients.choice import LibraryChoice, problems, settle
from clients.pinned import Pin, pins, pom
from clients.registry import LIBRARIES
from harness.core.errors import UserError

REDSYNC = "github.com/go-redsync/redsync/v4"
ETCD = ("go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/api/v3", "go.etcd.io/etcd/client/pkg/v3")


@pytest.mark.parametrize(
    ("library", "given", "expected"),
    [
        ("go-redsync", ["redsync@4.12.0"], {REDSYNC: "v4.12.0"}),
        ("go-redsync", ["redsync==v4.12.0"], {REDSYNC: "v4.12.0"}),
        ("go-redsync", [f"{REDSYNC}@v4.12.0"], {REDSYNC: "v4.12.0"}),
        ("go-redsync", ["go-redsync@4.12.0"], {REDSYNC: "v4.12.0"}),
        (
            "go-redsync",
            ["redsync@4.12.0", "go-redis@9.7.0"],
            {REDSYNC: "v4.12.0", "github.com/redis/go-redis/v9": "v9.7.0"},
        ),
        ("go-etcd-concurrency", ["client@3.6.4"], dict.fromkeys(ETCD, "v3.6.4")),
        (
            "go-etcd-concurrency",
            ["go.etcd.io/etcd/api/v3@3.6.5", "go-etcd-concurrency==3.6.4"],
            {ETCD[0]: "v3.6.4", ETCD[1]: "v3.6.5", ETCD[2]: "v3.6.4"},
        ),
        ("java-redisson", ["redisson@3.45.0"], {"org.redisson:redisson": "3.45.0"}),
        ("java-redisson", ["org.redisson:redisson==3.45.0"], {"org.redisson:redisson": "3.45.0"}),
        ("java-curator", ["java-curator@5.7.1"], {"org.apache.curator:curator-recipes": "5.7.1"}),
    ],
)
def test_a_name_and_a_version(library: str, given: list[str], expected: dict[str, str]) -> None:
    assert dict(pins(LIBRARIES.load(library), given)) == expected
    assert list(problems(LibraryChoice(with_=tuple(given)))) == []


@pytest.mark.parametrize(
    ("library", "given", "says"),
    [
        ("go-redsync", "redsync>=4", "names no one version; .* so write NAME@VERSION"),
        ("go-redsync", "redsync@3.0.0", "this module is major version 4.*name a version 4.x"),
        ("go-redsync", "redislock@1.0.0", f"is not built with 'redislock'; it is with {REDSYNC}"),
        ("go-redsync", "xxhash@2.3.0", "is not built with 'xxhash'"),
        ("java-curator", "redisson@3.45.0", "it is with org.apache.curator:curator-recipes"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_the_reason(
    library: str, given: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        pins(LIBRARIES.load(library), [given])


@pytest.mark.parametrize(
    ("library", "choice", "says"),
    [
        ("redis-py", LibraryChoice(with_=("redis@5.0.0",)), "in Python; write redis==5.0.0"),
        ("go-redsync", LibraryChoice(wheel="x-1-py3-none-any.whl"), "a wheel holds Python"),
    ],
)
def test_the_way_of_another_language_is_refused(
    library: str, choice: LibraryChoice, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        settle(LIBRARIES.load(library), choice)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        pins(LIBRARIES.load("go-redsync"), ["a@1", "b"])
    assert len(caught.value.problems) == 2


def test_a_pom_keeps_what_was_not_chosen() -> None:
    text = (LIBRARIES.load("java-curator").requirements.parent / "pom.xml").read_text()
    made = ET.fromstring(pom(text, [Pin("org.apache.curator:curator-recipes", "5.7.1")]))
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    versions = {
        one.findtext("m:artifactId", "", space): one.findtext("m:version", "", space)
        for one in made.iterfind(".//m:dependency", space)
    }
    assert versions["curator-recipes"] == "5.7.1"
    assert versions["jackson-databind"] == "2.20.0"
