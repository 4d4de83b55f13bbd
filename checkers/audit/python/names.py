"""What a name in Python code stands for: one level of data flow over the given files.

    project = Project(); project.add("settings.py", source)
    module.resolve(node, function)      # follows constants, defaults, imports, self.x
    module.dotted(node.func)            # "redis.Redis", whatever it was imported as

Followed: a name that is assigned once, a default of a parameter, an argument where a function is
called at one place of the file, class attributes, ``self.x`` set in one place, constants of another
given file, and ``int(...)``, ``float(...)``, ``os.environ.get(name, default)`` around all of these.

Traps: a name with two assignments stands for nothing here; guessing would make false findings.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.core.limits import AUDIT_FOLLOW_MAX

Function = ast.FunctionDef | ast.AsyncFunctionDef
_TIMEDELTA_S = {
    "weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1,
    "milliseconds": 1e-3, "microseconds": 1e-6,
}  # fmt: skip
_FOLDS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_CASTS = {"int", "float", "str", "bytes"}
_ENVIRONMENT = {"os.getenv", "os.environ.get", "environ.get", "getenv"}


class Module:
    """The syntax tree of one file with its names; raises SyntaxError where it is no Python."""

    def __init__(self, path: str, source: str, project: Project) -> None:
        self.path, self.project = path, project
        self.tree = ast.parse(source, filename=path)
        self.parent: dict[ast.AST, ast.AST] = {}
        self.imports: dict[str, str] = {}
        self.calls: dict[str, list[ast.Call]] = {}
        self._assigned: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        self._attributes: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        self._nodes: list[ast.AST] | None = None

    @property
    def nodes(self) -> list[ast.AST]:
        """All nodes in the order of the text; the names are known once this was asked for."""
        if self._nodes is None:
            self._nodes = []
            self._nodes += self._index(self.tree)
        return self._nodes

    def assigned(self, name: str) -> list[ast.expr]:
        """What a name of the module is set to."""
        return self._assigned.get((self.tree, name), []) if self.nodes else []

    def _index(self, node: ast.AST) -> Iterator[ast.AST]:
        stack = [node]
        while stack:
            here = stack.pop()
            yield here
            self._note(here)
            children = list(ast.iter_child_nodes(here))
            for child in children:
                self.parent[child] = here
            stack.extend(reversed(children))

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                self.imports[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module or ''}.{alias.name}".lstrip(".")
                self.imports[alias.asname or alias.name] = whole
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, node)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            if node.value is not None:
                self._assign(node.target, node.value, node)
        elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor):
            self._assign(node.target, ast.Call(ast.Name("?"), [], []), node)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, item.context_expr, node)
        elif isinstance(node, ast.Call):
            func = node.func
            last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            self.calls.setdefault(last, []).append(node)

    def _assign(self, target: ast.expr, value: ast.expr, where: ast.AST) -> None:
        scope = self.scope_of(where)
        if isinstance(target, ast.Name):
            self._assigned.setdefault((scope, target.id), []).append(value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.value.id in ("self", "cls"):
                owner = self.class_of(where)
                if owner is not None:
                    self._attributes.setdefault((owner, target.attr), []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._assign(part, ast.Call(ast.Name("?"), [], []), where)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The parents of a node, innermost first."""
        while node in self.parent:
            node = self.parent[node]
            yield node

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function around a node."""
        for parent in self.above(node):
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                return parent
        return None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around a node."""
        return next((p for p in self.above(node) if isinstance(p, ast.ClassDef)), None)

    def scope_of(self, node: ast.AST) -> ast.AST:
        """Where a name assigned here lives: function, class or module."""
        for parent in self.above(node):
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                return parent
        return self.tree

    def scope_name(self, node: ast.AST) -> str:
        """``Class.method`` around a node; empty at the top."""
        names = [
            p.name
            for p in self.above(node)
            if isinstance(p, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        return ".".join(reversed(names))

    def dotted(self, node: ast.AST) -> str:
        """The full name of an expression like ``r.Redis``, imports undone; "" if it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Call):
            parts.append("()")
            inner = self.dotted(node.func)
            return ".".join([inner, *reversed(parts)]) if inner else ""
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.imports.get(node.id, node.id))
        return ".".join(reversed(parts))

    def resolve(self, node: ast.expr, depth: int = 0) -> ast.expr:
        """What an expression stands for, as far as it can be followed; else itself."""
        if depth > AUDIT_FOLLOW_MAX:
            return node
        found: ast.expr | None = None
        if isinstance(node, ast.Name):
            found = self._name(node)
        elif isinstance(node, ast.Attribute):
            found = self._attribute(node)
        elif isinstance(node, ast.Await):
            found = node.value
        elif isinstance(node, ast.Call):
            found = self._cast(node)
        return node if found is None else self.home(found).resolve(found, depth + 1)

    def home(self, node: ast.expr) -> Module:
        """The module that a node is from."""
        if node in self.parent:
            return self
        return next((m for m in self.project.modules.values() if node in m.parent), self)

    def _name(self, node: ast.Name) -> ast.expr | None:
        for parent in (*self.above(node), self.tree):
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                values = self._assigned.get((parent, node.id), [])
                parameter = self._parameter(parent, node.id)
                if values:
                    return values[0] if len(values) == 1 and parameter is None else None
                if parameter is not None:
                    return parameter[0]
            elif isinstance(parent, ast.Module):
                values = self._assigned.get((parent, node.id), [])
                if len(values) == 1:
                    return values[0]
        if node.id in self.imports:
            return self.project.constant(self.imports[node.id])
        return None

    def _parameter(self, function: Function, name: str) -> tuple[ast.expr | None] | None:
        """None if it is no parameter, else what it stands for."""
        arguments = function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        only = [a.arg for a in arguments.kwonlyargs]
        if name not in names and name not in only:
            return None
        default: ast.expr | None = None
        if name in only:
            default = arguments.kw_defaults[only.index(name)]
        else:
            back = len(names) - names.index(name)
            if back <= len(arguments.defaults):
                default = arguments.defaults[-back]
        given: list[ast.expr] = []
        calls = self.calls.get(function.name, [])
        for call in calls:
            keywords = {k.arg: k.value for k in call.keywords}
            shift = 1 if names[:1] in (["self"], ["cls"]) else 0
            at = names.index(name) - shift if name in names else -1
            if name in keywords:
                given.append(keywords[name])
            elif 0 <= at < len(call.args):
                given.append(call.args[at])
        if given:
            return (given[0] if len(given) == 1 and len(calls) == 1 else None,)
        if isinstance(default, ast.Constant) and default.value is None:
            # "None" mostly says that somebody else gives it: believed only if nobody does.
            elsewhere = any(
                m is not self and m.nodes and function.name in m.calls
                for m in self.project.modules.values()
            )
            return (default if calls and not elsewhere else None,)
        return (default,)

    def _attribute(self, node: ast.Attribute) -> ast.expr | None:
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            owner = self.class_of(node)
            if owner is None:
                return None
            values = [
                *self._attributes.get((owner, node.attr), []),
                *self._assigned.get((owner, node.attr), []),
            ]
            real = [v for v in values if not (isinstance(v, ast.Constant) and v.value is None)]
            return real[0] if len(real) == 1 else None
        return self.project.constant(self.dotted(node))

    def _cast(self, node: ast.Call) -> ast.expr | None:
        name = self.dotted(node.func)
        if name in _CASTS and len(node.args) == 1 and not node.keywords:
            return node.args[0]
        if name in _ENVIRONMENT and node.args and isinstance(node.args[0], ast.Constant):
            known = self.project.environment.get(str(node.args[0].value))
            if known is not None:
                return ast.Constant(known)
            return node.args[1] if len(node.args) > 1 else None
        return None

    def number(self, node: ast.expr) -> float | None:
        """The number that an expression stands for, or None."""
        node = self.resolve(node)
        if isinstance(node, ast.Constant):
            value = node.value
            if isinstance(value, str):
                try:
                    return float(value)
                except ValueError:
                    return None
            return value if isinstance(value, int | float) and value is not True else None
        if isinstance(node, ast.BinOp) and type(node.op) in _FOLDS:
            module = self.home(node)
            left, right = module.number(node.left), module.number(node.right)
            if left is None or right is None or (right == 0 and isinstance(node.op, ast.Div)):
                return None
            try:
                return float(_FOLDS[type(node.op)](left, right))
            except ZeroDivisionError:
                return None
        return None

    def duration_ns(self, node: ast.expr, unit_ns: int) -> int | None:
        """The duration that an expression in ``unit_ns`` stands for, or None."""
        found = self.resolve(node)
        if isinstance(found, ast.Call) and self.dotted(found.func).endswith("timedelta"):
            total = 0.0
            for keyword in found.keywords:
                value = self.number(keyword.value)
                if value is None or keyword.arg not in _TIMEDELTA_S:
                    return None
                total += value * _TIMEDELTA_S[keyword.arg]
            return round(total * 1_000_000_000)
        value = self.number(found)
        return None if value is None else round(value * unit_ns)

    def text(self, node: ast.expr) -> str | None:
        """The string that an expression stands for; parts that are not known read ``{}``."""
        node = self.resolve(node)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bytes):
                return node.value.decode("utf-8", "replace")
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            parts = [str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values]
            return "".join(parts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
            left, right = self.text(node.left), self.text(node.right)
            if isinstance(node.op, ast.Mod):
                return left
            return None if left is None and right is None else (left or "{}") + (right or "{}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("format", "encode", "strip"):
                return self.text(node.func.value)
            if self.dotted(node.func) in ("sqlalchemy.text", "text") and node.args:
                return self.text(node.args[0])
        if isinstance(node, ast.Call) and node.args and self.dotted(node.func).endswith("text"):
            return self.text(node.args[0])
        return None


class Project:
    """All Python files that were given, and the variables of .env files."""

    def __init__(self) -> None:
        self.modules: dict[str, Module] = {}
        self._by_tail: dict[str, list[Module]] = {}  # by the last word of their dotted names
        self.environment: dict[str, str] = {}

    def add(self, path: str, source: str) -> Module:
        """Parses one file; raises SyntaxError."""
        module = Module(path, source, self)
        self.modules[path] = module
        name = PurePosixPath(path)
        for tail in {name.stem, name.parent.name}:
            self._by_tail.setdefault(tail, []).append(module)
        return module

    def constant(self, dotted: str) -> ast.expr | None:
        """What ``settings.LOCK_TTL`` stands for, if exactly one given file can be meant."""
        place, _, name = dotted.rpartition(".")
        if not place:
            return None
        tail = place.split(".")[-1]
        found = [
            values[0]
            for module in self._by_tail.get(tail, ())
            for values in [module.assigned(name)]
            if len(values) == 1
        ]
        return found[0] if len(found) == 1 else None
