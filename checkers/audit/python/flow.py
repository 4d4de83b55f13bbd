"""Where a value goes and what encloses a call, in one function of Python.

    use_of(module, call)            # "dropped", "checked", "unchecked", "used"
    section(module, grant, frees)   # lines of the critical section, and is it left by finally

Traps: this is syntax, not execution.  "checked" means that the value reaches a condition, a
comparison, an assertion or a return; whether the condition is the right one is not looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from checkers.audit.model import Place
from checkers.audit.python.names import Function, Module

_JUDGES = (
    ast.If, ast.While, ast.IfExp, ast.Assert, ast.Compare, ast.BoolOp, ast.Match, ast.UnaryOp,
)  # fmt: skip
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Lambda)


def place(module: Module, node: ast.AST) -> Place:
    """Where a node stands."""
    line = getattr(node, "lineno", 1)
    last = getattr(node, "end_lineno", line) or line
    return Place(module.path, line, last, getattr(node, "col_offset", 0) + 1)


def use_of(module: Module, call: ast.AST) -> str:
    """What becomes of the answer of a call."""
    node: ast.AST = call
    for parent in module.above(call):
        if isinstance(parent, ast.Await):
            node = parent
            continue
        if isinstance(parent, ast.Expr):
            return "dropped"
        if isinstance(parent, _LEAVES):
            return "used"
        if isinstance(parent, _JUDGES):
            return "checked"
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            return _use_of_targets(module, node, targets)
        return "used"  # an argument, an attribute, an element: somebody else's business
    return "used"


def _use_of_targets(module: Module, node: ast.AST, targets: Iterable[ast.expr]) -> str:
    for target in targets:
        if not isinstance(target, ast.Name):
            return "used"
        function = module.function_of(node) or module.tree
        for name in ast.walk(function):
            if isinstance(name, ast.Name) and name.id == target.id and name is not target:
                if not isinstance(name.ctx, ast.Load):
                    continue
                for parent in module.above(name):
                    if isinstance(parent, (*_LEAVES, ast.Call)) and not _is_test(parent, name):
                        if isinstance(parent, ast.Call) and name in parent.args:
                            break  # handed on, which is how an unlock gets its lock
                        return "used"
                    if isinstance(parent, ast.stmt) and not isinstance(parent, _JUDGES):
                        break
                    if isinstance(parent, _JUDGES):
                        if _in_test(module, parent, name):
                            return "checked"
                        break
    return "unchecked"


def _is_test(parent: ast.AST, name: ast.AST) -> bool:
    return isinstance(parent, ast.Call) and name in parent.args


def _in_test(module: Module, parent: ast.AST, name: ast.AST) -> bool:
    """Whether a name is in the condition of a statement and not in its body."""
    test = getattr(parent, "test", None) or getattr(parent, "subject", None)
    return test is None or name is test or any(n is name for n in ast.walk(test))


def in_finally(module: Module, node: ast.AST) -> bool:
    """Whether a call is made on every way out: in a ``finally``, or in ``__exit__``."""
    child = node
    for parent in module.above(node):
        if isinstance(parent, ast.Try) and child in parent.finalbody:
            return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return parent.name in ("__exit__", "__aexit__")
        child = parent
    return False


def handlers_of(module: Module, node: ast.AST) -> list[ast.ExceptHandler]:
    """The except clauses that an error of this call meets first."""
    child = node
    for parent in module.above(node):
        if isinstance(parent, ast.Try) and child in parent.body:
            return parent.handlers
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return []
        child = parent
    return []


def only_notes(handler: ast.ExceptHandler) -> bool:
    """Whether an except clause does nothing but pass, go on, print or log."""
    for statement in handler.body:
        if isinstance(statement, ast.Pass | ast.Continue):
            continue
        if isinstance(statement, ast.Expr):
            value = statement.value
            if isinstance(value, ast.Constant):
                continue
            if isinstance(value, ast.Call):
                name = ast.unparse(value.func).lower()
                if name == "print" or "log" in name.split(".")[0] or "warn" in name:
                    continue
        return False
    return True


def silenced(module: Module, node: ast.AST) -> bool:
    """Whether an error of this call vanishes: except with nothing but pass, or suppress(...)."""
    handlers = handlers_of(module, node)
    if handlers:
        return any(
            all(isinstance(s, ast.Pass | ast.Continue) for s in handler.body)
            for handler in handlers
        )
    return any(
        isinstance(parent, ast.With)
        and any(
            isinstance(item.context_expr, ast.Call)
            and module.dotted(item.context_expr.func) == "contextlib.suppress"
            for item in parent.items
        )
        for parent in module.above(node)
    )


def calls_in(function: Function | ast.Module, first: int, last: int) -> list[ast.Call]:
    """Calls between two lines of a function, both included, in order."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and first <= node.lineno <= last
    ]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def loop_of(module: Module, node: ast.AST) -> ast.For | ast.While | ast.AsyncFor | None:
    """The innermost loop around a node, within its function."""
    for parent in module.above(node):
        if isinstance(parent, ast.For | ast.While | ast.AsyncFor):
            return parent
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


def work_between(module: Module, grant: ast.AST, free: ast.AST) -> bool:
    """Whether a statement stands between the one that takes and the one that frees."""
    function = module.function_of(grant) or module.tree
    first, last = getattr(grant, "end_lineno", 0) or 0, getattr(free, "lineno", 0)
    return any(
        isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.Return | ast.Raise | ast.For)
        and first < node.lineno
        and (node.end_lineno or node.lineno) < last
        and _may_raise(node)
        for node in ast.walk(function)
    )


def _may_raise(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call | ast.Await | ast.Subscript) for n in ast.walk(node))
