"""Java, lowered to the common tree.

    RLock lock = redisson.getLock("a");     assign with type "RLock"
    @SchedulerLock(name = "a")              call "@SchedulerLock" in the args of its method

Traps: a field of a class is an assignment in the body of the class, and ``type`` of an assign is
what the source declares, without its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from checkers.audit.languages.lowering import Lowering
from checkers.audit.languages.tree import Node, Param


class Java(Lowering):
    """Lowers .java."""

    LANGUAGE = "java"
    THROUGH = frozenset({"parenthesized_expression", "expression_statement", "cast_expression"})
    TABLE: ClassVar[Mapping[str, str]] = {
        "import_declaration": "load", "identifier": "name", "this": "name",
        "type_identifier": "name", "decimal_integer_literal": "number",
        "decimal_floating_point_literal": "number", "true": "const", "false": "const",
        "null_literal": "const", "string_literal": "string", "binary_expression": "binary",
        "unary_expression": "unary", "ternary_expression": "branch", "if_statement": "branch",
        "while_statement": "loop", "do_statement": "loop", "for_statement": "loop",
        "enhanced_for_statement": "loop", "return_statement": "give", "throw_statement": "throw",
        "class_declaration": "klass", "record_declaration": "klass", "enum_declaration": "klass",
        "interface_declaration": "klass", "class_body": "block", "block": "block",
        "constructor_body": "block", "method_declaration": "function",
        "constructor_declaration": "function", "lambda_expression": "function",
        "assignment_expression": "assign", "local_variable_declaration": "declare",
        "field_declaration": "declare", "method_invocation": "call",
        "object_creation_expression": "new", "field_access": "field", "try_statement": "attempt",
        "try_with_resources_statement": "attempt", "catch_clause": "handler",
        "array_initializer": "items", "annotation": "note", "marker_annotation": "note",
        "switch_expression": "branch", "cast_expression": "cast", "resource": "resource",
    }  # fmt: skip

    def load(self, ts: Any) -> Node:
        """import a.b.C;"""
        whole = self.text(ts.named_children[0])
        self.imports[whole.rpartition(".")[2]] = whole
        if self.text(ts).rstrip("; ").endswith(".*"):
            self.imports[f"{whole}.*"] = whole
        return Node("other", ts, name="import")

    def cast(self, ts: Any) -> Node:
        """(T) x is x."""
        value = self.part(ts, "value")
        return value if value is not None else Node("other", ts, name="cast")

    def declare(self, ts: Any) -> Node:
        """A variable or field; several of them become a block."""
        typed = self.field_text(ts, "type").split("<")[0]
        words = self.text(next((c for c in ts.children if c.type == "modifiers"), None))
        made = []
        for one in ts.children_by_field_name("declarator"):
            name = self.name(one.child_by_field_name("name"))
            value = self.part(one, "value")
            if value is None:
                made.append(Node("other", one, name="declared", args=[name], type=typed))
            else:
                node = Node("assign", one, targets=[name], value=value, type=typed)
                node.name = "static" if "static" in words else ""
                made.append(node)
        return made[0] if len(made) == 1 else Node("other", ts, name="declared", args=made)

    def resource(self, ts: Any) -> Node:
        """try (T x = value)."""
        name, value = ts.child_by_field_name("name"), self.part(ts, "value")
        if name is None:
            return Node("other", ts, args=self.nodes(ts))
        typed = self.field_text(ts, "type")
        return Node("assign", ts, targets=[self.name(name)], value=value, type=typed)

    def call(self, ts: Any) -> Node:
        """f(...) and a.f(...)."""
        arguments = ts.child_by_field_name("arguments")
        return Node(
            "call",
            ts,
            name=self.field_text(ts, "name"),
            on=self.part(ts, "object"),
            args=[] if arguments is None else self.nodes(arguments),
        )

    def new(self, ts: Any) -> Node:
        """new T(...)."""
        arguments = ts.child_by_field_name("arguments")
        maker = self.field_text(ts, "type").split("<")[0].rpartition(".")[2]
        args = [] if arguments is None else self.nodes(arguments)
        bodies = [self.node(c) for c in ts.named_children if c.type == "class_body"]
        return Node(
            "call", ts, name=maker, args=args, made=True, block=bodies[0] if bodies else None
        )

    def field(self, ts: Any) -> Node:
        """a.b."""
        return Node("field", ts, name=self.field_text(ts, "field"), on=self.part(ts, "object"))

    def attempt(self, ts: Any) -> Node:
        """try, with or without resources."""
        final, handlers = None, []
        for child in ts.named_children:
            if child.type == "catch_clause":
                handlers.append(self.node(child))
            elif child.type == "finally_clause":
                final = self.block(child)
        resources = ts.child_by_field_name("resources")
        return Node(
            "try",
            ts,
            args=[] if resources is None else self.nodes(resources),
            body=self.part(ts, "body"),
            handlers=handlers,
            final=final,
        )

    def handler(self, ts: Any) -> Node:
        """catch."""
        return Node("handler", ts, body=self.part(ts, "body"))

    def function(self, ts: Any) -> Node:
        """A method with its annotations."""
        made = super().function(ts)
        modifiers = next((c for c in ts.children if c.type == "modifiers"), None)
        notes = [] if modifiers is None else [self.node(c) for c in modifiers.named_children]
        made.args = notes
        made.kids = [*notes, *made.kids]
        for note in notes:
            note.parent = made
        return made

    def note(self, ts: Any) -> Node:
        """@Name(key = value)."""
        words: dict[str, Node] = {}
        arguments = ts.child_by_field_name("arguments")
        for child in [] if arguments is None else arguments.named_children:
            if child.type == "element_value_pair":
                value = self.part(child, "value")
                if value is not None:
                    words[self.field_text(child, "key")] = value
            elif "comment" not in child.type:
                words["value"] = self.node(child)
        return Node("call", ts, name=f"@{self.field_text(ts, 'name')}", words=words)

    def params(self, ts: Any) -> list[Param]:
        """Names and types."""
        listed = ts.child_by_field_name("parameters")
        if listed is None:
            return []
        if listed.type == "identifier":
            return [Param(self.text(listed))]
        return [
            Param(
                self.field_text(child, "name") or self.text(child),
                None,
                self.field_text(child, "type").split("<")[0],
            )
            for child in listed.named_children
            if "comment" not in child.type
        ]
