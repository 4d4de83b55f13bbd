"""One file with its locks: from facts back to the nodes they came from.

    scene = Scene(module, facts)
    for grant, node in scene.grants(): scene.section(grant)   # calls between grant and release

Traps: a fact has a place and no node; two calls never begin at the same place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from checkers.audit.model import Fact, Place
from checkers.audit.python.flow import calls_in, place
from checkers.audit.python.names import Function, Module


class Scene:
    """The facts of one file and where they stand."""

    def __init__(self, module: Module, facts: Sequence[Fact]) -> None:
        self.module = module
        self.facts = list(facts)
        self._nodes: dict[tuple[int, int], ast.expr] = {}
        for node in module.nodes:
            if isinstance(node, ast.Call):
                self._nodes.setdefault((node.lineno, node.col_offset + 1), node)
        for node in module.nodes:
            if isinstance(node, ast.With | ast.AsyncWith):
                for item in node.items:
                    at = (item.context_expr.lineno, item.context_expr.col_offset + 1)
                    self._nodes.setdefault(at, item.context_expr)

    def node(self, fact: Fact) -> ast.expr | None:
        """The expression that a fact came from."""
        return self._nodes.get((fact.place.line, fact.place.column))

    def grants(self) -> Iterator[tuple[Fact, ast.expr]]:
        """Grants with their nodes."""
        for fact in self.facts:
            node = self.node(fact) if fact.kind == "grant" else None
            if node is not None:
                yield fact, node

    def of(self, kind: str) -> Iterator[tuple[Fact, ast.expr]]:
        """Facts of a kind with their nodes."""
        for fact in self.facts:
            node = self.node(fact) if fact.kind == kind else None
            if node is not None:
                yield fact, node

    def function(self, node: ast.AST) -> Function | ast.Module:
        """The function around a node, else the module."""
        return self.module.function_of(node) or self.module.tree

    def section(self, grant: Fact, node: ast.AST) -> list[ast.Call]:
        """Calls between a grant and its release."""
        last = int(grant.get("end") or 0)
        return calls_in(self.function(node), grant.place.end_line + 1, last)

    def name(self, call: ast.Call) -> str:
        """The full name of what is called; the last part where the whole is not known."""
        return self.module.dotted(call.func) or last(call)

    def fact(self, kind: str, node: ast.AST, **values: Any) -> Fact:
        """A fact at a node."""
        return Fact(kind, self.place(node), values, self.module.scope_name(node))

    def place(self, node: ast.AST) -> Place:
        """Where a node stands."""
        return place(self.module, node)


def last(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def leaves(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes below a node, those of functions within it left out."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        for child in ast.iter_child_nodes(here):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                stack.append(child)


def calls(node: ast.AST) -> list[ast.Call]:
    """Calls below a node, without those of functions within it, in the order of the text."""
    found = [n for n in leaves(node) if isinstance(n, ast.Call)]
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


def leads_away(body: Sequence[ast.stmt]) -> bool:
    """Whether a block leaves what is around it."""
    return any(
        isinstance(n, ast.Raise | ast.Return | ast.Continue | ast.Break)
        or (isinstance(n, ast.Call) and last(n) in ("exit", "_exit", "abort", "fail"))
        for statement in body
        for n in leaves(statement)
    )
