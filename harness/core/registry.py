"""Registries: names -> "module:object" strings.  Nothing is imported until it is used.

Adding a backend, library, fault, checker or model is one file and one line in the table of its
room (``compose/registry.py``, ``clients/registry.py`` and so on).  Third parties add theirs by an
entry point in the group ``lockhavoc.<kind>`` (``lockhavoc.faults``, ``lockhavoc.checkers`` ...).
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Any

from harness.core.errors import UserError


class Registry:
    """Names of one kind of thing, loaded lazily.

    ``extras`` maps a missing third-party module to the command that installs it.
    """

    def __init__(
        self, kind: str, table: Mapping[str, str], *, extras: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        self._table = dict(table)
        self._extras = dict(extras or {})
        self._found_entry_points = False
        self._loaded: dict[str, Any] = {}

    def _all(self) -> dict[str, str]:
        if not self._found_entry_points:
            self._found_entry_points = True
            for point in importlib.metadata.entry_points(group=f"lockhavoc.{self._plural}"):
                self._table.setdefault(point.name, point.value)
        return self._table

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted(self._all())

    def __contains__(self, name: str) -> bool:
        return name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def where(self, name: str) -> str:
        """The "module:object" string behind ``name``; UserError with a hint if unknown."""
        table = self._all()
        if name in table:
            return table[name]
        close = difflib.get_close_matches(name, table, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UserError(
            f"unknown {self.kind} {name!r}{hint} (known: {', '.join(sorted(table)) or 'none'})"
        )

    def load(self, name: str) -> Any:
        """Imports and returns the object; a missing extra says which command installs it."""
        if name in self._loaded:
            return self._loaded[name]
        module_name, _, attribute = self.where(name).partition(":")
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            fix = self._extras.get((error.name or "").split(".")[0])
            if fix is None:
                raise
            raise UserError(
                f"{self.kind} {name!r} needs the Python package {error.name!r}: {fix}"
            ) from error
        self._loaded[name] = getattr(module, attribute)
        return self._loaded[name]
