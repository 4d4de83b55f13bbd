"""Lua as Redis runs it, lowered to the common tree.

    redis.call("del", KEYS[1])      call "call" on name "redis"; KEYS[1] is a field called "1"

Used for .lua files and for scripts that stand in strings of other languages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from checkers.audit.languages.lowering import Lowering
from checkers.audit.languages.tree import Node, Param


class Lua(Lowering):
    """Lowers a script."""

    LANGUAGE = "lua"
    THROUGH = frozenset({"parenthesized_expression"})
    TABLE: ClassVar[Mapping[str, str]] = {
        "identifier": "name", "number": "number", "true": "const", "false": "const",
        "nil": "const", "string": "string", "binary_expression": "operation",
        "unary_expression": "unary", "if_statement": "branch", "elseif_statement": "branch",
        "else_statement": "otherwise", "while_statement": "loop", "for_statement": "loop",
        "repeat_statement": "loop", "return_statement": "give", "block": "block",
        "function_declaration": "function", "function_definition": "function",
        "assignment_statement": "several", "function_call": "call",
        "dot_index_expression": "field", "bracket_index_expression": "element",
        "expression_list": "single",
    }  # fmt: skip

    def single(self, ts: Any) -> Node:
        """One expression stands for itself."""
        inner = self.nodes(ts)
        return inner[0] if len(inner) == 1 else Node("list", ts, args=inner)

    def otherwise(self, ts: Any) -> Node:
        """else."""
        return self.part(ts, "body") or self.block(ts)

    def operation(self, ts: Any) -> Node:
        """a == b: the operator is a token between the sides."""
        sides = [self.part(ts, "left"), self.part(ts, "right")]
        sign = next((c.type for c in ts.children if not c.is_named), "")
        return Node("binary", ts, name=sign, args=[s for s in sides if s is not None])

    def several(self, ts: Any) -> Node:
        """local a = b."""
        targets: list[Node] = []
        value: Node | None = None
        for child in ts.named_children:
            if child.type == "variable_list":
                targets = self.nodes(child)
            elif child.type == "expression_list":
                value = self.single(child)
        return Node("assign", ts, targets=targets, value=value)

    def call(self, ts: Any) -> Node:
        """redis.call("get", KEYS[1])."""
        function, arguments = ts.child_by_field_name("name"), ts.child_by_field_name("arguments")
        args = [] if arguments is None else self.nodes(arguments)
        if function is not None and function.type == "dot_index_expression":
            on = self.part(function, "table")
            return Node("call", ts, name=self.field_text(function, "field"), on=on, args=args)
        return Node("call", ts, name=self.text(function), args=args)

    def field(self, ts: Any) -> Node:
        """a.b."""
        return Node("field", ts, name=self.field_text(ts, "field"), on=self.part(ts, "table"))

    def element(self, ts: Any) -> Node:
        """KEYS[1] reads as a field called "1"."""
        on, index = self.part(ts, "table"), self.field_text(ts, "field")
        return Node("field", ts, name=index, on=on)

    def params(self, ts: Any) -> list[Param]:
        """Names."""
        listed = ts.child_by_field_name("parameters")
        return [] if listed is None else [Param(self.text(c)) for c in listed.named_children]
