"""Ruby, lowered to the common tree.

    redis.set(key, token, nx: true, px: 30_000)     call with words {"nx": ..., "px": ...}
    begin ... ensure ... end                        try with a final part

Traps: a bare word may be a call; it is a name here.  A method gives back its last expression, so
``flow.use_of`` looks at the place of a statement before it says that an answer is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from checkers.audit.languages.lowering import Lowering
from checkers.audit.languages.tree import Node, Param


class Ruby(Lowering):
    """Lowers .rb and .rake."""

    LANGUAGE = "ruby"
    THROUGH = frozenset({"parenthesized_statements", "then_expression"})
    TABLE: ClassVar[Mapping[str, str]] = {
        "identifier": "name", "constant": "name", "self": "name", "instance_variable": "own",
        "class_variable": "name", "global_variable": "name", "integer": "number",
        "float": "number", "true": "const", "false": "const", "nil": "const", "string": "string",
        "bare_string": "string", "simple_symbol": "symbol", "heredoc_beginning": "heredoc",
        "array": "items", "hash": "pairs", "binary": "binary", "unary": "unary", "if": "branch",
        "elsif": "branch", "unless": "unless", "if_modifier": "branch",
        "unless_modifier": "unless", "conditional": "branch", "while": "loop", "until": "loop",
        "while_modifier": "loop", "until_modifier": "loop", "for": "loop", "return": "give",
        "method": "function", "singleton_method": "function", "class": "klass",
        "module": "klass", "call": "call", "scope_resolution": "scope", "assignment": "assign",
        "operator_assignment": "assign", "begin": "attempt", "body_statement": "attempt",
        "do_block": "given", "block": "given", "block_body": "attempt", "lambda": "lambda_",
        "then": "block", "else": "block", "ensure": "block", "do": "block", "case": "switch",
        "rescue_modifier": "rescued",
    }  # fmt: skip

    def prepare(self, root: Any) -> None:
        """Bodies of heredocs stand after the line that begins them, in the same order."""
        self._bodies: list[Any] = []
        if b"<<" not in root.text:
            return
        stack = [root]
        while stack:
            here = stack.pop()
            if here.type == "heredoc_body":
                self._bodies.append(here)
                continue
            stack.extend(reversed(here.named_children))
        self._bodies.sort(key=lambda n: n.start_byte)
        self._begun = 0

    def heredoc(self, ts: Any) -> Node:
        """<<~NAME."""
        if self._begun >= len(self._bodies):
            return Node("string", ts)
        body = self._bodies[self._begun]
        self._begun += 1
        text = "".join(
            "{}" if c.type == "interpolation" else self.text(c)
            for c in body.named_children
            if c.type != "heredoc_end"
        )
        return Node("string", ts, name=text)

    def own(self, ts: Any) -> Node:
        """@x is a field of self."""
        return Node("field", ts, name=self.text(ts).lstrip("@"), on=Node("name", ts, name="self"))

    def symbol(self, ts: Any) -> Node:
        """:name is a string."""
        return Node("string", ts, name=self.text(ts)[1:])

    def scope(self, ts: Any) -> Node:
        """A::B."""
        return Node("field", ts, name=self.field_text(ts, "name"), on=self.part(ts, "scope"))

    def unless(self, ts: Any) -> Node:
        """unless is an if."""
        return self.branch(ts)

    def call(self, ts: Any) -> Node:
        """a.f(x, key: y) { block }."""
        args: list[Node] = []
        words: dict[str, Node] = {}
        listed = ts.child_by_field_name("arguments")
        for child in [] if listed is None else listed.named_children:
            if child.type == "pair":
                key = self.text(child.child_by_field_name("key")).strip(":\"'")
                value = self.part(child, "value")
                words[key] = value if value is not None else Node("name", child, name=key)
            elif "comment" not in child.type:
                args.append(self.node(child))
        name = self.field_text(ts, "method")
        on, block = self.part(ts, "receiver"), self.part(ts, "block")
        if name in ("require", "require_relative") and args and on is None:
            self.imports[args[0].name] = args[0].name
        if name == "raise" and on is None:
            return Node("throw", ts, args=args)
        if listed is None and block is None and name and name[0].islower() and on is not None:
            return Node("call", ts, name=name, on=on)
        return Node("call", ts, name=name, on=on, args=args, words=words, block=block)

    def pairs(self, ts: Any) -> Node:
        """A hash."""
        words: dict[str, Node] = {}
        for child in ts.named_children:
            if child.type == "pair":
                key = self.text(child.child_by_field_name("key")).strip(":\"'")
                value = self.part(child, "value")
                if value is not None:
                    words[key] = value
        return Node("dict", ts, words=words)

    def function(self, ts: Any) -> Node:
        """A method, whose last expression is its answer."""
        made = super().function(ts)
        made.type = "last"
        return made

    def given(self, ts: Any) -> Node:
        """do |x| ... end, { |x| ... }."""
        body = self.part(ts, "body")
        return Node("function", ts, params=self.params(ts), body=body, type="last")

    def lambda_(self, ts: Any) -> Node:
        """-> { ... }."""
        inner = self.part(ts, "body")
        return Node("function", ts, body=inner.body if inner and inner.body else inner, type="last")

    def attempt(self, ts: Any) -> Node:
        """begin, or the body of a method: a block, or a try if it has rescue or ensure."""
        statements: list[Node] = []
        handlers: list[Node] = []
        final: Node | None = None
        for child in ts.named_children:
            if child.type == "rescue":
                handlers.append(Node("handler", child, body=self.part(child, "body")))
            elif child.type == "ensure":
                final = self.block(child)
            elif "comment" not in child.type:
                statements.append(self.node(child))
        body = Node("block", ts, args=statements)
        if not handlers and final is None:
            return body
        return Node("try", ts, body=body, handlers=handlers, final=final)

    def rescued(self, ts: Any) -> Node:
        """work rescue nil."""
        handler = ts.child_by_field_name("handler")
        body = self.part(ts, "body")
        inner = [] if handler is None else [self.node(handler)]
        empty = not inner or (inner[0].kind == "const" and inner[0].value is None)
        block = Node("block", handler or ts, args=[] if empty else inner)
        return Node("try", ts, body=body, handlers=[Node("handler", handler or ts, body=block)])

    def switch(self, ts: Any) -> Node:
        """case value."""
        value = ts.child_by_field_name("value")
        rest = [c for c in ts.named_children if value is None or c.id != value.id]
        return Node("if", ts, test=self.maybe(value), args=[self.node(c) for c in rest])

    def params(self, ts: Any) -> list[Param]:
        """Names and defaults."""
        listed = ts.child_by_field_name("parameters")
        found = []
        for child in [] if listed is None else listed.named_children:
            if child.type in ("optional_parameter", "keyword_parameter"):
                found.append(Param(self.field_text(child, "name"), self.part(child, "value")))
            else:
                found.append(Param(self.text(child).lstrip("*&")))
        return found
