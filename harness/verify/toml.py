"""A scenario given as data, as TOML: what is needed of the format, and not more.

    dump({"name": "x", "claim": {"verdict": "holds"}, "faults": [{"kind": "flush"}]})

Tables and lists of tables at the top level; below, tables are written inline.  Reading it back with
``tomllib`` gives the same data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dump(data: Mapping[str, Any]) -> str:
    """The text of a file; None values are left out."""
    given = {name: value for name, value in data.items() if value is not None}
    lines = [
        f"{_key(name)} = {value_of(value)}"
        for name, value in given.items()
        if not _table(value) and not _tables(value)
    ]
    for name, value in given.items():
        if _table(value):
            lines += ["", f"[{_key(name)}]", *_pairs(value)]
    for name, value in given.items():
        if _tables(value):
            for one in value:
                lines += ["", f"[[{_key(name)}]]", *_pairs(one)]
    return "\n".join(lines) + "\n"


def value_of(value: Any) -> str:
    """One value; TypeError for what TOML or we do not know."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        # A JSON string is a TOML basic string, but for characters above the BMP, kept as they are.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_of(one) for one in value) + "]"
    if isinstance(value, Mapping):
        inner = (f"{_key(name)} = {value_of(one)}" for name, one in value.items())
        return "{ " + ", ".join(inner) + " }" if value else "{}"
    raise TypeError(f"{value!r} has no place in a scenario file")


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(k)} = {value_of(v)}" for k, v in table.items() if v is not None]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else value_of(name)


def _table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(_table(one) for one in value)
