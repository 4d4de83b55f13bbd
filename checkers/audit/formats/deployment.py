"""What runs where: Compose files, Kubernetes manifests, command lines of servers.

    for setting in of_yaml(documents(text)): ...     # Setting(line, name, value, format, scope)

Every leaf of a YAML file is a setting under its dotted name.  On top of that, options of a server
on a command line or in an environment become settings of that server's own format, so that a rule
about redis.conf also sees ``command: redis-server --maxmemory-policy allkeys-lru``; ``scope`` is
the service or container they belong to.  How many processes run is ``replicas`` and ``workers``.

Traps: an image that is called redis may be anything; options count by the program that is started,
and by the image only where the command begins with an option.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from checkers.audit.formats.yaml_tree import Node

_SERVERS = (
    ("redis", re.compile(r"(?:redis|valkey)(?!.*exporter)", re.I)),
    ("postgresql", re.compile(r"postgres(?!.*exporter)", re.I)),
    ("etcd", re.compile(r"(?:^|/)etcd\b", re.I)),
    ("zoo", re.compile(r"zookeeper", re.I)),
)
_WEB = re.compile(r"\b(?:gunicorn|uvicorn|hypercorn|uwsgi|granian|celery|puma|sidekiq|pm2)\b")
_WORKERS = re.compile(
    r"(?:^|\s)(?:-w|-i|--workers?|--processes|--concurrency|-c|--instances)[ =](\d+)(?=\s|$)"
)
_FLAG = re.compile(r"--?([a-z][\w.\-]*)=(.*)$", re.I)


class Setting(NamedTuple):
    """One setting.  ``format`` empty: that of the file."""

    line: int
    name: str
    value: object
    format: str = ""
    scope: str = ""


def of_yaml(found: Iterable[Node], form: str) -> Iterator[Setting]:
    """All settings of the documents of one file."""
    for document in found:
        yield from _leaves(document, "", form)
        services = document.get("services")
        for name, service in services.items() if services else []:
            yield from _container(service, name)
            replicas = service.get("deploy", "replicas") or service.get("scale")
            if replicas is not None:
                yield Setting(replicas.line, "replicas", replicas.value, "deployment", name)
        for item in [document, *_list(document, "items")]:
            yield from _manifest(item)


def _list(node: Node, *path: str) -> list[Node]:
    found = node.get(*path)
    return found.elements() if found else []


def _leaves(node: Node, name: str, form: str) -> Iterator[Setting]:
    for key, value in node.items():
        yield from _leaves(value, f"{name}.{key}" if name else key, form)
    for element in node.elements():
        yield from _leaves(element, name, form)
    if isinstance(node.value, str):
        yield Setting(node.line, name, node.value, form)


def _manifest(document: Node) -> Iterator[Setting]:
    """Containers of a workload of Kubernetes, whatever its kind."""
    kind = document.get("kind")
    if kind is None or document.get("apiVersion") is None:
        return
    named = document.get("metadata", "name")
    scope = str(named.value) if named else str(kind.value)
    replicas = document.get("spec", "replicas")
    if replicas is not None:
        yield Setting(replicas.line, "replicas", replicas.value, "deployment", scope)
    paths = (
        ("spec", "template", "spec"), ("spec",),
        ("spec", "jobTemplate", "spec", "template", "spec"),
    )  # fmt: skip
    for path in paths:
        for container in _list(document, *path, "containers"):
            yield from _container(container, scope)
    data = document.get("data")
    for name, value in data.items() if str(kind.value) == "ConfigMap" and data else []:
        if re.search(r"redis|valkey", name) and isinstance(value.value, str):
            for number, line in enumerate(value.value.splitlines(), value.line + 1):
                option, _, rest = line.strip().partition(" ")
                if option and not option.startswith("#"):
                    yield Setting(number, option.lower(), rest.strip(), "redis", scope)


def _container(service: Node, scope: str) -> Iterator[Setting]:
    image = service.get("image")
    name = str(image.value) if image and image.value else ""
    tokens: list[tuple[int, str]] = []
    for key in ("entrypoint", "command", "args"):
        tokens += _tokens(service.get(key))
    program = next((word for _, word in tokens if not word.startswith("-")), "")
    started = program if tokens and not tokens[0][1].startswith("-") else name
    server = next((form for form, known in _SERVERS if known.search(started)), "")
    if not server:
        server = next((form for form, known in _SERVERS if known.search(name)), "")
    yield from command_settings(tokens, server, scope)
    for line, key, value in _environment(service.get("environment") or service.get("env")):
        yield Setting(line, key, value, "env", scope)
        if key.startswith("ETCD_"):
            yield Setting(line, key[5:].lower().replace("_", "-"), value, "etcd", scope)
        elif key.startswith("ZOO_") and server == "zoo":
            words = key[4:].lower().split("_")
            camel = words[0] + "".join(word.title() for word in words[1:])
            yield Setting(line, camel, value, "zoo", scope)


def _tokens(node: Node | None) -> list[tuple[int, str]]:
    if node is None:
        return []
    if isinstance(node.value, str):
        try:
            return [(node.line, word) for word in shlex.split(node.value.replace("\n", " "))]
        except ValueError:
            return [(node.line, word) for word in node.value.split()]
    return [(e.line, str(e.value)) for e in node.elements() if e.value is not None]


def _environment(node: Node | None) -> Iterator[tuple[int, str, str]]:
    if node is None:
        return
    for key, value in node.items():
        yield value.line, key, str(value.value if value.value is not None else "")
    for element in node.elements():
        if isinstance(element.value, str):
            key, _, text = element.value.partition("=")
            yield element.line, key, text
        else:
            key_node, value_node = element.get("name"), element.get("value")
            if key_node and value_node and isinstance(value_node.value, str):
                yield value_node.line, str(key_node.value), value_node.value


def command_settings(tokens: list[tuple[int, str]], server: str, scope: str) -> Iterator[Setting]:
    """Options on a command line, as settings of the server they are for."""
    words = [word for _, word in tokens]
    whole = " ".join(words)
    workers = _WORKERS.search(whole) if _WEB.search(whole) else None
    if workers:
        line = next(n for n, word in tokens if _WEB.search(word))
        yield Setting(line, "workers", workers[1], "deployment", scope)
    for at, (line, word) in enumerate(tokens):
        following = words[at + 1] if at + 1 < len(words) else ""
        flag = _FLAG.match(word)
        if server == "postgresql" and word == "-c" and "=" in following:
            name, _, value = following.partition("=")
            yield Setting(tokens[at + 1][0], name.strip(), value.strip(), "postgresql", scope)
        elif flag:
            yield Setting(line, flag[1], flag[2], server or "flags", scope)
        elif word.startswith("--") and following and not following.startswith("--"):
            yield Setting(line, word[2:], following, server or "flags", scope)
