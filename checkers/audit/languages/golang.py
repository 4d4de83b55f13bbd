"""Go, lowered to the common tree.

    mutex := rs.NewMutex("a", redsync.WithExpiry(8*time.Second))    assign, call "NewMutex"
    defer mutex.Unlock()                                            defer around a call

Traps: an answer has several parts; ``targets`` of an assign stand in their order, and ``_`` is the
name of one that nobody looks at.  A name of the package belongs to all files of its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from checkers.audit.languages.lowering import Lowering
from checkers.audit.languages.tree import Node, Param


class Go(Lowering):
    """Lowers .go."""

    LANGUAGE = "go"
    THROUGH = frozenset({
        "parenthesized_expression", "expression_statement", "literal_element", "type_conversion",
    })  # fmt: skip
    TABLE: ClassVar[Mapping[str, str]] = {
        "import_spec": "load", "identifier": "name", "field_identifier": "name",
        "package_identifier": "name", "type_identifier": "name", "int_literal": "number",
        "float_literal": "number", "true": "const", "false": "const", "nil": "const",
        "interpreted_string_literal": "quoted", "raw_string_literal": "raw",
        "binary_expression": "binary", "unary_expression": "unary", "if_statement": "when",
        "for_statement": "loop", "return_statement": "give", "function_declaration": "function",
        "method_declaration": "function", "func_literal": "function",
        "short_var_declaration": "several", "assignment_statement": "several",
        "var_spec": "declare", "const_spec": "declare", "call_expression": "call",
        "selector_expression": "field", "composite_literal": "literal", "defer_statement": "defer",
        "block": "block", "expression_switch_statement": "switch", "statement_list": "block",
    }  # fmt: skip

    def block(self, ts: Any) -> Node:
        """{...}: the list of statements inside is the block."""
        inner = [c for c in ts.named_children if c.type == "statement_list"]
        return super().block(inner[0] if len(inner) == 1 else ts)

    def load(self, ts: Any) -> Node:
        """import name "path"."""
        path = self.field_text(ts, "path").strip('"`')
        parts = path.split("/")
        last = parts[-2] if len(parts) > 1 and parts[-1][1:].isdigit() else parts[-1]
        self.imports[self.field_text(ts, "name") or last.removeprefix("go-")] = path
        return Node("other", ts, name="import")

    def quoted(self, ts: Any) -> Node:
        """ "text"."""
        raw = self.text(ts)[1:-1]
        return Node("string", ts, name=raw.replace("\\n", "\n").replace('\\"', '"'))

    def raw(self, ts: Any) -> Node:
        """`text`."""
        return Node("string", ts, name=self.text(ts)[1:-1])

    def when(self, ts: Any) -> Node:
        """if init; test {}: what is done first counts as part of the head."""
        first = self.part(ts, "initializer")
        return Node(
            "if",
            ts,
            args=[] if first is None else [first],
            test=self.part(ts, "condition"),
            body=self.part(ts, "consequence"),
            other=self.part(ts, "alternative"),
        )

    def several(self, ts: Any) -> Node:
        """a, b := f()."""
        left, right = ts.child_by_field_name("left"), ts.child_by_field_name("right")
        values = self.nodes(right)
        value = values[0] if len(values) == 1 else Node("list", right, args=values)
        return Node("assign", ts, targets=self.nodes(left), value=value)

    def declare(self, ts: Any) -> Node:
        """var and const."""
        value = ts.child_by_field_name("value")
        targets = [self.name(c) for c in ts.children_by_field_name("name") if c.is_named]
        typed = self.field_text(ts, "type").lstrip("*")
        if value is None:
            return Node("other", ts, name="declared", args=targets, type=typed)
        values = self.nodes(value) if value.type == "expression_list" else [self.node(value)]
        only = values[0] if len(values) == 1 else Node("list", value, args=values)
        return Node("assign", ts, targets=targets, value=only, type=typed)

    def call(self, ts: Any) -> Node:
        """f(...), x.f(...), func() {...}()."""
        function = ts.child_by_field_name("function")
        arguments = ts.child_by_field_name("arguments")
        args = [] if arguments is None else self.nodes(arguments)
        if function.type == "selector_expression":
            name = self.field_text(function, "field")
            return Node("call", ts, name=name, on=self.part(function, "operand"), args=args)
        if function.type == "identifier":
            return Node("call", ts, name=self.text(function), args=args)
        return Node("call", ts, on=self.node(function), args=args)

    def field(self, ts: Any) -> Node:
        """a.b."""
        return Node("field", ts, name=self.field_text(ts, "field"), on=self.part(ts, "operand"))

    def literal(self, ts: Any) -> Node:
        """T{...}: a dict or a list, ``type`` says of what."""
        body = ts.child_by_field_name("body")
        words: dict[str, Node] = {}
        rest: list[Node] = []
        for child in [] if body is None else body.named_children:
            if child.type == "keyed_element":
                key, value = child.named_children[0], child.named_children[-1]
                words[self.text(key).strip('"')] = self.node(value)
            elif "comment" not in child.type:
                rest.append(self.node(child))
        kind = "dict" if words or not rest else "list"
        return Node(kind, ts, type=self.field_text(ts, "type"), words=words, args=rest)

    def defer(self, ts: Any) -> Node:
        """defer f()."""
        return Node("defer", ts, args=self.nodes(ts))

    def switch(self, ts: Any) -> Node:
        """switch value {}; without a value its cases are tests."""
        return Node("if", ts, test=self.part(ts, "value"), args=self.nodes(ts)[-8:])

    def params(self, ts: Any) -> list[Param]:
        """The receiver first, then the parameters."""
        found = []
        for name in ("receiver", "parameters"):
            listed = ts.child_by_field_name(name)
            for child in [] if listed is None else listed.named_children:
                typed = self.field_text(child, "type").lstrip("*")
                names = child.children_by_field_name("name")
                found += [Param(self.text(one), None, typed) for one in names]
        return found
