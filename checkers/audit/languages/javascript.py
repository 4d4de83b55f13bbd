"""JavaScript and TypeScript, lowered to the common tree.

    redlock.acquire(["a"], 5000)        call "acquire" on name "redlock"
    {NX: true, PX: 30000}               as the last argument also in the words of its call

Traps: ``await``, ``as T``, ``!`` and parentheses vanish.  A class field is an assignment to
``this.x``, like the one in a constructor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from checkers.audit.languages.lowering import Lowering
from checkers.audit.languages.tree import Node, Param


class JavaScript(Lowering):
    """Lowers .js, .mjs, .cjs, .jsx, .ts and .tsx."""

    LANGUAGE = "javascript"
    THROUGH = frozenset({
        "parenthesized_expression", "await_expression", "as_expression", "non_null_expression",
        "satisfies_expression", "expression_statement", "export_statement", "else_clause",
        "template_substitution", "spread_element",
    })  # fmt: skip
    TABLE: ClassVar[Mapping[str, str]] = {
        "import_statement": "load", "variable_declarator": "declare", "identifier": "name",
        "property_identifier": "name", "this": "name", "super": "name", "number": "number",
        "private_property_identifier": "name", "shorthand_property_identifier": "name",
        "true": "const", "false": "const", "null": "const", "undefined": "const",
        "string": "string", "template_string": "string", "array": "items",
        "array_pattern": "items", "object": "pairs", "binary_expression": "binary",
        "unary_expression": "unary", "ternary_expression": "branch", "if_statement": "branch",
        "while_statement": "loop", "do_statement": "loop", "for_statement": "loop",
        "for_in_statement": "loop", "return_statement": "give", "throw_statement": "throw",
        "class_declaration": "klass", "class": "klass", "abstract_class_declaration": "klass",
        "function_declaration": "function", "function_expression": "function",
        "arrow_function": "function", "method_definition": "function",
        "generator_function_declaration": "function", "assignment_expression": "assign",
        "augmented_assignment_expression": "assign", "field_definition": "own_field",
        "public_field_definition": "own_field", "call_expression": "call",
        "new_expression": "new", "member_expression": "field", "try_statement": "attempt",
        "catch_clause": "handler", "statement_block": "block", "class_body": "block",
        "switch_statement": "switch",
    }  # fmt: skip

    def load(self, ts: Any) -> Node:
        """import X, {Y as Z} from "module"."""
        module = self.field_text(ts, "source").strip("'\"`")
        self.imports.setdefault(f"<{module}>", module)
        stack = list(ts.named_children)
        while stack:
            child = stack.pop()
            if child.type == "identifier":
                self.imports[self.text(child)] = module
            elif child.type == "import_specifier":
                local = self.field_text(child, "alias") or self.field_text(child, "name")
                self.imports[local] = f"{module}:{self.field_text(child, 'name')}"
            elif child.type in ("import_clause", "named_imports", "namespace_import"):
                stack += child.named_children
        return Node("other", ts, name="import")

    def declare(self, ts: Any) -> Node:
        """const x = value; require() counts as an import."""
        target, value = ts.child_by_field_name("name"), self.part(ts, "value")
        needed = value
        while needed is not None and needed.name != "require" and needed.on is not None:
            needed = needed.on  # require("redlock").default
        if needed is not None and needed.kind == "call" and needed.name == "require":
            self._require(target, needed)
        typed = self.field_text(ts, "type").lstrip(": ")
        targets = [] if target is None else [self.node(target)]
        if value is None:
            return Node("other", ts, name="declared", args=targets, type=typed)
        return Node("assign", ts, targets=targets, value=value, type=typed)

    def _require(self, target: Any, call: Node) -> None:
        module = call.args[0].name if call.args else ""
        if target is not None and target.type == "identifier":
            self.imports[self.text(target)] = module
        elif target is not None:
            for child in target.named_children:
                name = self.text(child).split(":")
                self.imports[name[-1].strip()] = f"{module}:{name[0].strip()}"

    def own_field(self, ts: Any) -> Node:
        """A field of a class."""
        key = ts.child_by_field_name("property") or ts.child_by_field_name("name")
        value = self.part(ts, "value")
        target = Node("field", key, name=self.text(key), on=Node("name", key, name="this"))
        if value is None:
            return Node("other", ts, name="declared", args=[target])
        return Node("assign", ts, targets=[target], value=value)

    def pairs(self, ts: Any) -> Node:
        """An object."""
        words: dict[str, Node] = {}
        rest: list[Node] = []
        for child in ts.named_children:
            if child.type == "pair":
                key = child.child_by_field_name("key")
                value = self.part(child, "value")
                if value is not None:
                    words[self.text(key).strip("'\"")] = value
            elif child.type == "shorthand_property_identifier":
                words[self.text(child)] = self.name(child)
            elif child.type == "method_definition":
                words[self.field_text(child, "name")] = self.node(child)
            elif "comment" not in child.type:
                rest.append(self.node(child))
        return Node("dict", ts, words=words, args=rest)

    def field(self, ts: Any) -> Node:
        """a.b."""
        return Node("field", ts, name=self.field_text(ts, "property"), on=self.part(ts, "object"))

    def call(self, ts: Any) -> Node:
        """f(...) and a.f(...)."""
        function, arguments = (
            ts.child_by_field_name("function"),
            ts.child_by_field_name("arguments"),
        )
        args = [] if arguments is None else self.nodes(arguments)
        if arguments is not None and arguments.type == "template_string":
            args = [self.string(arguments)]
        if function.type == "member_expression":
            name = self.field_text(function, "property")
            return Node("call", ts, name=name, on=self.part(function, "object"), args=args)
        if function.type == "identifier":
            return Node("call", ts, name=self.text(function), args=args)
        return Node("call", ts, on=self.node(function), args=args)

    def new(self, ts: Any) -> Node:
        """new X(...): a call whose name is the class."""
        arguments = ts.child_by_field_name("arguments")
        maker = self.field_text(ts, "constructor").rpartition(".")[2]
        args = [] if arguments is None else self.nodes(arguments)
        return Node("call", ts, name=maker, args=args, made=True)

    def attempt(self, ts: Any) -> Node:
        """try."""
        handler = self.part(ts, "handler")
        final = ts.child_by_field_name("finalizer")
        inner = None if final is None else final.child_by_field_name("body")
        return Node(
            "try",
            ts,
            body=self.part(ts, "body"),
            handlers=[] if handler is None else [handler],
            final=self.maybe(inner),
        )

    def handler(self, ts: Any) -> Node:
        """catch."""
        return Node("handler", ts, body=self.part(ts, "body"))

    def switch(self, ts: Any) -> Node:
        """switch: its value is tested."""
        return Node("if", ts, test=self.part(ts, "value"), body=self.part(ts, "body"))

    def params(self, ts: Any) -> list[Param]:
        """Names, defaults and types."""
        one = ts.child_by_field_name("parameter")
        if one is not None:
            return [Param(self.text(one))]
        found = []
        listed = ts.child_by_field_name("parameters")
        for child in [] if listed is None else listed.named_children:
            if child.type in ("required_parameter", "optional_parameter"):
                pattern = child.child_by_field_name("pattern")
                typed = self.field_text(child, "type").lstrip(": ")
                found.append(Param(self.text(pattern), self.part(child, "value"), typed))
            elif child.type == "assignment_pattern":
                found.append(Param(self.field_text(child, "left"), self.part(child, "right")))
            elif "comment" not in child.type:
                found.append(Param(self.text(child)))
        return found
