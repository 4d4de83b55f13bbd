"""Settings of servers and applications as facts, each with its line.

    config_facts("redis.conf", text)  ->  [Fact("setting", line 3, {"name": "maxmemory", ...})]

``values``: format, name (dotted, as written), value (a string, number or boolean) and duration_ns
where name, value or format tell the unit (``lock_ttl_ms = 500``, ``"30s"``, tickTime).  ``scope``
is the service or container that a setting of a deployment is for.

A new format: its name in ``format_of``, a reader of lines in ``plain`` or of trees in
``deployment``, a pair of samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from checkers.audit.formats.deployment import Setting, command_settings, of_yaml
from checkers.audit.formats.plain import READERS, duration_of
from checkers.audit.formats.yaml_tree import documents
from checkers.audit.model import Fact, Place

SUFFIXES = (
    ".conf", ".ini", ".cfg", ".toml", ".json", ".env", ".properties", ".yaml", ".yml",
)  # fmt: skip
_NAMES = {"procfile": "procfile", "zoo.cfg": "zoo", ".env": "env"}
_MS = {"zoo": {"tickTime", "minSessionTimeout", "maxSessionTimeout"},
       "etcd": {"heartbeat-interval", "election-timeout"},
       "postgresql": {"idle_session_timeout", "idle_in_transaction_session_timeout",
                      "lock_timeout", "statement_timeout", "deadlock_timeout"},
       "redis": {"cluster-node-timeout", "down-after-milliseconds"}}  # fmt: skip


def may_be_settings(path: str) -> bool:
    """Whether a file looks like settings by its name."""
    name = PurePosixPath(path).name.lower()
    return name.endswith(SUFFIXES) or name in _NAMES or name.startswith(".env.")


def format_of(path: str, text: str) -> str:
    """The format of a configuration file by its name, for .conf by its content; "" if none."""
    name = PurePosixPath(path).name.lower()
    if name in _NAMES:
        return _NAMES[name]
    if name.endswith((".toml", ".json")):
        return name.rpartition(".")[2]
    if name.endswith((".yaml", ".yml")):
        return "etcd" if re.match(r"etcd\b.*(conf|config)", name) else "yaml"
    if name.startswith(".env.") or name.endswith((".env", ".properties")):
        return "env"
    if name.endswith((".ini", ".cfg")):
        if "pgbouncer" in name:
            return "pgbouncer"
        return "zoo" if re.search(r"^\s*tickTime\s*=", text, re.M) else "ini"
    if name.endswith(".conf"):
        if re.search(r"redis|sentinel|valkey", name):
            return "redis"
        if "postgres" in name:
            return "postgresql"
        if re.match(r"chrony|ntp", name):
            return "clock"
        if re.search(r"^\s*(maxmemory|appendonly|sentinel)\b", text, re.M):
            return "redis"
        if re.search(r"^\s*(shared_buffers|max_connections|idle_\w+_timeout)\s*=", text, re.M):
            return "postgresql"
    return ""


def config_facts(path: str, text: str) -> list[Fact]:
    """All settings of one file; ValueError where it is not in its format."""
    form = format_of(path, text)
    return [_fact(path, setting, form) for setting in _settings(form, text)]


def _settings(form: str, text: str) -> Iterator[Setting]:
    if form in ("yaml", "etcd"):
        yield from of_yaml(documents(text), form)
        return
    if form == "procfile":
        for number, row in enumerate(text.splitlines(), 1):
            name, colon, command = row.partition(":")
            if colon:
                words = [(number, word) for word in command.split()]
                yield from command_settings(words, "", name.strip())
        return
    for line, name, value in READERS[form](text):
        yield Setting(line, name, value)
        if form == "env" and name.startswith("ETCD_"):
            yield Setting(line, name[5:].lower().replace("_", "-"), value, "etcd")


def _fact(path: str, setting: Setting, form: str) -> Fact:
    own = setting.format or form
    values: dict[str, Any] = {"format": own, "name": setting.name, "value": setting.value}
    duration_ns = duration_of(setting.name, setting.value)
    if duration_ns is None and setting.name in _MS.get(own, ()):
        number = re.fullmatch(r"\s*(\d+)\s*", str(setting.value))
        duration_ns = int(number[1]) * 1_000_000 if number else None
    if duration_ns is not None:
        values["duration_ns"] = duration_ns
    return Fact("setting", Place(path, setting.line, setting.line), values, setting.scope)


__all__ = ["config_facts", "duration_of", "format_of", "may_be_settings"]
