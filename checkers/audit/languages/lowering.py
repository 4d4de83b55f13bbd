"""What lowering a grammar to the common tree has in common: a table from node types to functions.

    class Go(Lowering):
        TABLE = {"call_expression": "call", "defer_statement": "defer", ...}

A type that is in no table becomes "other" with everything below it, so nothing is lost.

Traps: names of node types change between versions of a grammar; ``tests/audit`` reads a sample of
every form, and a type that went missing shows up as a sample that finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from checkers.audit.languages.tree import Node, Param, Source

_NUMBER = re.compile(r"^[\d_]+(?:\.[\d_]+)?(?:[eE][+-]?\d+)?")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "'": "'", "\\": "\\", "`": "`"}


class Lowering:
    """Lowers one file; a subclass names the methods of its node types."""

    LANGUAGE: ClassVar[str] = ""
    TABLE: ClassVar[Mapping[str, str]] = {}
    THROUGH: ClassVar[frozenset[str]] = frozenset()  # the one node below stands for it

    def __init__(self, path: str, tree: Any) -> None:
        self.path = path
        self.imports: dict[str, str] = {}
        self._methods: dict[str, Callable[[Any], Node]] = {
            kind: getattr(self, method) for kind, method in self.TABLE.items()
        }
        self.prepare(tree.root_node)
        root = self.block(tree.root_node)
        self.source = Source(path, self.LANGUAGE, root, broken=tree.root_node.has_error)
        self.source.imports = self.imports

    def prepare(self, root: Any) -> None:
        """What must be known before the first node."""

    def node(self, ts: Any) -> Node:
        """Lowers a node of the grammar."""
        method = self._methods.get(ts.type)
        if method is not None:
            return method(ts)
        if ts.type in self.THROUGH:
            inner = [c for c in ts.named_children if c.type != "comment"]
            if inner:
                return self.node(inner[0])
        return Node("other", ts, name=ts.type, args=self.nodes(ts))

    def maybe(self, ts: Any) -> Node | None:
        """Lowers a node that may be missing."""
        return None if ts is None else self.node(ts)

    def nodes(self, ts: Any) -> list[Node]:
        """All named nodes below, comments left out."""
        return [self.node(c) for c in ts.named_children if "comment" not in c.type]

    def part(self, ts: Any, name: str) -> Node | None:
        """The lowered node of a field, or None."""
        return self.maybe(ts.child_by_field_name(name))

    @staticmethod
    def text(ts: Any) -> str:
        """The text of a node; "" for None."""
        return "" if ts is None else ts.text.decode("utf-8", "replace")

    def field_text(self, ts: Any, name: str) -> str:
        """The text of a field."""
        return self.text(ts.child_by_field_name(name))

    def block(self, ts: Any) -> Node:
        """A list of statements."""
        return Node("block", ts, args=self.nodes(ts))

    def name(self, ts: Any) -> Node:
        """A name."""
        return Node("name", ts, name=self.text(ts))

    def number(self, ts: Any) -> Node:
        """A number, with its separators and suffixes gone."""
        found = _NUMBER.match(self.text(ts))
        value = float(found[0].replace("_", "")) if found else None
        return Node("number", ts, value=value)

    def const(self, ts: Any) -> Node:
        """true, false, or the language's word for nothing."""
        word = {"true": True, "false": False}
        return Node("const", ts, value=word.get(self.text(ts)))

    def string(self, ts: Any) -> Node:
        """A string; what is put into it reads ``{}`` and hangs below it."""
        text, inside = "", []
        for child in ts.named_children:
            if "escape" in child.type:
                text += unescape(self.text(child))
            elif child.type in ("template_substitution", "interpolation"):
                text += "{}"
                inside += self.nodes(child)
            else:
                text += self.text(child)
        return Node("string", ts, name=text, args=inside)

    def items(self, ts: Any) -> Node:
        """A list."""
        return Node("list", ts, args=self.nodes(ts))

    def binary(self, ts: Any) -> Node:
        """An operation with two sides."""
        sides = [self.part(ts, "left"), self.part(ts, "right")]
        operator = self.field_text(ts, "operator")
        return Node("binary", ts, name=operator, args=[s for s in sides if s is not None])

    def unary(self, ts: Any) -> Node:
        """An operation with one side; its operator is the first token."""
        sign = self.field_text(ts, "operator") or self.text(ts.children[0])
        return Node("unary", ts, name=sign, args=self.nodes(ts)[-1:])

    def branch(self, ts: Any) -> Node:
        """if, unless, ternary: a test, what follows, what else."""
        return Node(
            "if",
            ts,
            test=self.part(ts, "condition"),
            body=self.part(ts, "consequence") or self.part(ts, "body"),
            other=self.part(ts, "alternative"),
        )

    def loop(self, ts: Any) -> Node:
        """A loop; whatever is not its body counts as its head."""
        body = ts.child_by_field_name("body")
        test = ts.child_by_field_name("condition")
        skip = {n.id for n in (body, test) if n is not None}
        head = [c for c in ts.named_children if c.id not in skip and "comment" not in c.type]
        return Node(
            "loop",
            ts,
            name=ts.type,
            test=self.maybe(test),
            args=[self.node(c) for c in head],
            body=self.maybe(body),
        )

    def give(self, ts: Any) -> Node:
        """return."""
        return Node("return", ts, args=self.nodes(ts))

    def throw(self, ts: Any) -> Node:
        """throw or raise."""
        return Node("throw", ts, args=self.nodes(ts))

    def klass(self, ts: Any) -> Node:
        """A class or module."""
        return Node("class", ts, name=self.field_text(ts, "name"), body=self.part(ts, "body"))

    def function(self, ts: Any) -> Node:
        """A function, method or lambda."""
        return Node(
            "function",
            ts,
            name=self.field_text(ts, "name"),
            params=self.params(ts),
            body=self.part(ts, "body"),
        )

    def params(self, ts: Any) -> list[Param]:
        """The parameters of a function."""
        raise NotImplementedError

    def assign(self, ts: Any) -> Node:
        """An assignment with ``left`` and ``right``."""
        left = self.part(ts, "left")
        return Node(
            "assign", ts, targets=[] if left is None else [left], value=self.part(ts, "right")
        )


def unescape(text: str) -> str:
    """What an escape sequence like ``\\n`` stands for."""
    return _ESCAPES.get(text[1:], text)
