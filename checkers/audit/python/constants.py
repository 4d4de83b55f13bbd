"""Settings in Python files: constants of modules, such as those of Django, Celery and Gunicorn.

    setting_facts(module)   # LOCK_TTL_MS = 500  ->  Fact("setting", name="LOCK_TTL_MS", ...)

Traps: only a constant that is set once, at the top of a module, is a setting; what is computed from
the environment is not known here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from checkers.audit.formats.plain import duration_of
from checkers.audit.model import Fact, Place
from checkers.audit.python.names import Module

_ABOUT = re.compile(
    r"lock|lease|leader|ttl|expir|timeout|renew|retry|heartbeat|interval|period|workers|process"
    r"|concurrency|replica|transport|options|cache|redis|database",
    re.I,
)


def setting_facts(module: Module) -> list[Fact]:
    """Constants at the top of a module as settings."""
    small = PurePosixPath(module.path).name.startswith("gunicorn")
    known: dict[str, list[ast.expr]] = {}
    for statement in module.tree.body:
        target: ast.expr | None = None
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        elif isinstance(statement, ast.AnnAssign):
            target = statement.target
        if isinstance(target, ast.Name) and (target.id.isupper() or small):
            value = getattr(statement, "value", None)
            if isinstance(value, ast.expr):
                known.setdefault(target.id, []).append(value)
    found: list[Fact] = []
    for word, values in known.items():
        if len(values) == 1 and _ABOUT.search(word):
            for name, node in _leaves(word, values[0]):
                found += _setting(module, name, node)
    return found


def _leaves(name: str, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield from _leaves(f"{name}.{key.value}", value)
    else:
        yield name, node


def _setting(module: Module, name: str, node: ast.expr) -> Iterator[Fact]:
    value: Any = module.number(node)
    if value is None and isinstance(node, ast.Constant):
        value = node.value
    if not isinstance(value, str | int | float | bool):
        return
    values: dict[str, Any] = {"format": "python", "name": name, "value": value}
    duration_ns = duration_of(name, f"{value:g}" if isinstance(value, float) else value)
    if duration_ns is not None:
        values["duration_ns"] = duration_ns
    line = node.lineno
    yield Fact("setting", Place(module.path, line, line), values)
