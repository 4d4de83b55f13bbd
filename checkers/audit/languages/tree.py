"""One form for the syntax of several languages: what the audit asks about, and nothing else.

    Node("call", name="acquire", on=Node("name", name="redlock"), args=[...], words={...})

Kinds and their parts:

- call: name, on (receiver), args, words (keyword arguments, keys of an options object or of a
  struct), block (a function given beside the arguments); ``made`` for ``new X()``
- name, field (on.name), string (name is the text, ``{}`` for what is put in), number (value), const
  (value: True, False, None), binary and unary (name is the operator), dict (words), list
- assign (targets, value), function (name, params, body), class (name, body), if and loop (test,
  body, other), try (body, handlers, final), handler, defer, return, throw, block (args), other

Traps: parentheses, ``await`` and casts are gone, so the parent of an awaited call is the statement.
``index`` of an assign says which of several answers the call gives to a target.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class Param(msgspec.Struct, frozen=True):
    """A parameter: name, default and declared type, "" where there is none."""

    name: str
    default: Node | None = None
    type: str = ""


class Node:
    """One node.  ``kids`` are all nodes below it in the order of the text."""

    __slots__ = (
        "args", "block", "body", "column", "end_line", "final", "handlers", "kids", "kind", "line",
        "made", "name", "on", "other", "params", "parent", "targets", "test", "type", "value",
        "words",
    )  # fmt: skip

    def __init__(self, kind: str, at: Any, **parts: Any) -> None:
        self.kind = kind
        self.line: int = at.start_point[0] + 1
        self.column: int = at.start_point[1] + 1
        self.end_line: int = at.end_point[0] + 1
        self.parent: Node | None = None
        self.name: str = parts.get("name", "")
        self.type: str = parts.get("type", "")
        self.made: bool = parts.get("made", False)
        self.on: Node | None = parts.get("on")
        self.test: Node | None = parts.get("test")
        self.value: Any = parts.get("value")
        self.block: Node | None = parts.get("block")
        self.body: Node | None = parts.get("body")
        self.other: Node | None = parts.get("other")
        self.final: Node | None = parts.get("final")
        self.args: list[Node] = parts.get("args", [])
        self.words: dict[str, Node] = parts.get("words", {})
        self.targets: list[Node] = parts.get("targets", [])
        self.handlers: list[Node] = parts.get("handlers", [])
        self.params: list[Param] = parts.get("params", [])
        self.kids: list[Node] = self._kids() if parts else []
        for kid in self.kids:
            kid.parent = self

    def _kids(self) -> list[Node]:
        kids = [n for n in (self.on, self.test, self.value) if isinstance(n, Node)]
        kids += [*self.targets, *self.args, *self.words.values()]
        kids += [p.default for p in self.params if p.default is not None]
        kids += [n for n in (self.block, self.body) if n is not None]
        kids += self.handlers
        kids += [n for n in (self.other, self.final) if n is not None]
        return kids

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} line {self.line}>"

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in order."""
        stack = [self]
        while stack:
            here = stack.pop()
            yield here
            stack.extend(reversed(here.kids))

    def above(self) -> Iterator[Node]:
        """The parents, innermost first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def within(self, other: Node | None) -> bool:
        """Whether this is ``other`` or below it."""
        return other is not None and (self is other or any(p is other for p in self.above()))

    def words_of(self) -> str:
        """The expression as text, the same for the same expression; "" for what is not simple."""
        if self.kind == "name":
            return self.name
        if self.kind == "field" and self.on is not None:
            return f"{self.on.words_of()}.{self.name}"
        if self.kind == "string":
            return f"'{self.name}'"
        if self.kind == "number":
            return f"{self.value:.15g}" if isinstance(self.value, float) else ""
        if self.kind == "const":
            return "null" if self.value is None else str(self.value).lower()
        if self.kind == "call":
            inner = ", ".join(a.words_of() for a in self.args)
            start = f"{self.on.words_of()}." if self.on is not None else ""
            return f"{start}{self.name}({inner})"
        if self.kind == "binary":
            return f" {self.name} ".join(a.words_of() for a in self.args)
        if self.kind in ("unary", "list", "other"):
            return f"{self.name}[{', '.join(a.words_of() for a in self.args)}]"
        return ""

    def dotted(self) -> str:
        """``a.b.c`` for names and fields, calls with ``()``; "" for anything else."""
        if self.kind == "name":
            return self.name
        if self.kind in ("field", "call"):
            tail = f"{self.name}()" if self.kind == "call" else self.name
            if self.on is None:
                return tail
            start = self.on.dotted()
            return f"{start}.{tail}" if start else ""
        return ""


class Source:
    """One file: its tree, its imports, and its functions' names."""

    def __init__(self, path: str, language: str, root: Node, *, broken: bool) -> None:
        self.path, self.language, self.root, self.broken = path, language, root, broken
        self.imports: dict[str, str] = {}  # local name -> what it stands for
        self.nodes = list(root.walk())
        self.calls = [n for n in self.nodes if n.kind == "call"]

    def imported(self, prefixes: tuple[str, ...]) -> bool:
        """Whether something whose name begins so is imported."""
        return any(whole.startswith(prefixes) for whole in self.imports.values())
