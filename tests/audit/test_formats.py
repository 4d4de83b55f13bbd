"""Settings of all formats, with their lines; what is not understood is refused, never half read."""

from __future__ import annotations

import pytest

from checkers.audit.formats import config_facts, format_of
from checkers.audit.formats.yaml_tree import Node, documents


def plain(node: Node) -> object:
    """A tree without its lines."""
    if isinstance(node.value, dict):
        return {key: plain(value) for key, value in node.items()}
    if isinstance(node.value, list):
        return [plain(value) for value in node.elements()]
    return node.value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a: 1\nb:\n  c: x # y\n  d: 'it''s'\n", {"a": "1", "b": {"c": "x", "d": "it's"}}),
        ("a:\n- 1\n- b: 2\n  c: 3\n-\n  - 4\n", {"a": ["1", {"b": "2", "c": "3"}, ["4"]]}),
        ('a: [x, "y, z", {k: v, w: [1]}]\n', {"a": ["x", "y, z", {"k": "v", "w": ["1"]}]}),
        ("a: [\n  x,\n  y\n]\nb: 1\n", {"a": ["x", "y"], "b": "1"}),
        ("a: |\n  one: 1\n  # two\nb: >-\n  x\n", {"a": "one: 1\n# two", "b": "x"}),
        ("a: &x {k: 1}\nb:\n  <<: *x\n  l: 2\n", {"a": {"k": "1"}, "b": {"k": "1", "l": "2"}}),
        ("a: http://x:80/#b\nb:\nc: ~\n", {"a": "http://x:80/#b", "b": None, "c": None}),
        ("a: one\n  two\n", {"a": "one two"}),
        ("- - a\n  - b\n- c\n", [["a", "b"], "c"]),
        ("a: 1\na: 2\n", {"a": "2"}),
        ("a: !t b\n", {"a": "b"}),
        ("'q:r': 1\n\"s\": x:y\n", {"q:r": "1", "s": "x:y"}),
    ],
)
def test_yaml(text: str, wanted: object) -> None:
    assert [plain(node) for node in documents(text)] == [wanted]


@pytest.mark.parametrize(
    "text",
    ["a: [1\n", "a: 'x\n", "a: *none\n", "\ta: 1\n", "a: {b: 1}}\n", "a:\n    b: 1\n  c: 2\n"],
)
def test_yaml_that_is_not_understood_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ValueError, match="line "):
        documents(text)


def test_documents_and_lines() -> None:
    first, second = documents("a: 1\n---\n# x\nb:\n  - c: 1\n    d: 2\n")
    assert first.value["a"].line == 1
    assert second.value["b"].elements()[0].value["d"].line == 6


def settings(path: str, text: str) -> set[tuple[str, str, object, int]]:
    return {
        (f.get("format"), f.get("name"), f.get("value"), f.place.line)
        for f in config_facts(path, text)
    }


def test_options_of_servers_in_deployments_are_settings_of_the_server() -> None:
    compose = """\
services:
  db:
    image: postgres:17
    command: -c fsync=off -c "lock_timeout=5s"
  kv:
    image: quay.io/coreos/etcd:v3.5
    environment:
      ETCD_HEARTBEAT_INTERVAL: "100"
  zk:
    image: zookeeper:3.9
    environment:
      - ZOO_TICK_TIME=2000
"""
    found = settings("compose.yaml", compose)
    assert ("postgresql", "fsync", "off", 4) in found
    assert ("postgresql", "lock_timeout", "5s", 4) in found
    assert ("etcd", "heartbeat-interval", "100", 8) in found
    assert ("zoo", "tickTime", "2000", 12) in found


def test_a_config_map_holds_settings_of_redis() -> None:
    manifest = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: locks
data:
  redis.conf: |
    maxmemory 1gb
    maxmemory-policy allkeys-lru
"""
    assert ("redis", "maxmemory-policy", "allkeys-lru", 8) in settings("cm.yaml", manifest)


def test_durations_are_in_one_unit_whatever_the_format() -> None:
    for path, text in (
        ("zoo.cfg", "tickTime=2000\n"),
        ("a.yaml", "lease: 2s\n"),
        ("a.ini", "[lock]\nlease_ms = 2000\n"),
        ("postgresql.conf", "idle_session_timeout = 2000\n"),
        ("x.env", "ETCD_ELECTION_TIMEOUT=2000\n"),
        ("a.properties", "lock.ttl.seconds=2\n"),
    ):
        durations = [f.get("duration_ns") for f in config_facts(path, text)]
        assert 2_000_000_000 in durations, path


def test_formats_are_told_by_name_and_content() -> None:
    assert format_of("etcd.conf.yml", "") == "etcd"
    assert format_of("chrony.conf", "") == "clock"
    assert format_of("my.cfg", "tickTime=2000") == "zoo"
    assert format_of("setup.cfg", "[metadata]") == "ini"
    assert format_of(".env.production", "") == "env"
    assert format_of("other.conf", "listen 80;") == ""
