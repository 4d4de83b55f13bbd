"""Settings of servers and applications in files of lines, TOML and JSON.

    for line, name, value in READERS["redis"](text): ...

Formats: redis.conf and sentinel.conf, postgresql.conf, pgbouncer.ini and other .ini and .cfg, .env
and .properties, zoo.cfg, chrony.conf and ntp.conf, Procfile, TOML, JSON.

Traps: in redis.conf a later line wins, in JSON a later key; both readings are what the server or
library itself does.  A file that breaks its format raises ValueError with the place.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

_UNITS_NS = {
    "us": 1_000, "ms": 1_000_000, "millis": 1_000_000, "milliseconds": 1_000_000,
    "s": 1_000_000_000, "sec": 1_000_000_000, "secs": 1_000_000_000, "seconds": 1_000_000_000,
    "m": 60_000_000_000, "min": 60_000_000_000, "minutes": 60_000_000_000,
    "h": 3_600_000_000_000, "hours": 3_600_000_000_000,
}  # fmt: skip
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)?\s*$", re.I)


def duration_of(name: str, value: object) -> int | None:
    """The duration in ns that a setting stands for, if its name or value says the unit."""
    if isinstance(value, bool):
        return None
    amount = _AMOUNT.match(str(value))
    if not amount:
        return None
    unit = amount[2] or re.split(r"[_.\-]", name.lower())[-1]
    camel = re.search(r"(Ms|Millis|Seconds|Secs)$", name)
    if not amount[2] and camel:
        unit = camel[1].lower()
    factor = _UNITS_NS.get(unit.lower())
    return None if factor is None else round(float(amount[1]) * factor)


def _redis(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        try:
            words = shlex.split(stripped)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        yield number, words[0].lower(), " ".join(words[1:])


def _equals(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().removeprefix("export ")
        if not stripped or stripped[0] in "#;![":
            continue
        name, sign, value = stripped.partition("=")
        if not sign:
            name, _, value = stripped.partition(" ")  # postgresql.conf may do without
        value = re.sub(r"\s+#.*$", "", value.strip())
        yield number, name.strip(), value.strip().strip("'\"")


def _ini(text: str) -> Iterator[tuple[int, str, str]]:
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if head := re.match(r"\[([^\]]+)\]$", stripped):
            section = head[1].strip() + "."
        elif stripped and stripped[0] not in "#;" and (sign := re.search(r"[=:]", stripped)):
            value = re.sub(r"\s+[#;].*$", "", stripped[sign.end() :]).strip().strip("'\"")
            yield number, section + stripped[: sign.start()].strip(), value


def _words(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        name, _, value = line.strip().partition(" ")
        if name and name[0] not in "#!%;":
            yield number, name.lower(), value.strip()


def _toml(text: str) -> Iterator[tuple[int, str, Any]]:
    data = tomllib.loads(text)
    places: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(#.*)?$", line):
            table = head[1].strip() + "."
        elif key := re.match(r"\s*([\w.\-\"' ]+?)\s*=", line):
            places.setdefault(re.sub(r"[\"' ]", "", table + key[1]), number)
    for name, value in _leaves(data):
        yield places.get(name, 1), name, value


def _json(text: str) -> Iterator[tuple[int, str, Any]]:
    data = json.loads(text)
    at = 0
    for name, value in _leaves(data):
        key = json.dumps(name.rpartition(".")[2])
        found = re.compile(re.escape(key) + r"\s*:").search(text, at)
        if found:
            at = found.start()
        yield text.count("\n", 0, at) + 1, name, value


def _leaves(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, f"{name}.{key}" if name else str(key))
    elif isinstance(data, list):
        for value in data:
            yield from _leaves(value, name)
    elif isinstance(data, str | int | float | bool):
        yield name, data


READERS: dict[str, Callable[[str], Iterator[tuple[int, str, Any]]]] = {
    "redis": _redis, "postgresql": _equals, "pgbouncer": _equals, "env": _equals, "toml": _toml,
    "json": _json, "ini": _ini, "zoo": _equals, "clock": _words,
}  # fmt: skip
