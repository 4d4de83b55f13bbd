"""Facts about lock objects of known libraries in Python.

    client.lock("a", timeout=10)  ->  Fact("lock", lease_ns=10_000_000_000, library="redis-py")
    with lock: ...                ->  Fact("grant", how="with", with_raises=True, end=14)

Facts and their values:

- lock: library, family, key, lease ("ttl" or "session"), lease_ns (None: never expires; absent: not
  known), lease_word (the source of the argument), lease_unit_ns, renewing
- grant: library, family, how ("with", "call"), use (see ``use_of``), may_fail (comes back without
  the lock), with_raises, lease_ns, renewing, end (last line of the section), freed, protected,
  work (something can raise before it is freed), free_line
- release, renew: library, use, guard; release: silenced (its error vanishes); renew: swallowed (its
  error is only noted), every_ns

Traps: an object whose maker is not seen gives no fact, so unknown code stays UNKNOWN.
"""

from __future__ import annotations

import ast
from typing import Any

from checkers.audit.knowledge import BY_METHOD, CLIENTS, LIBRARIES, MAKERS, Library
from checkers.audit.model import Fact
from checkers.audit.python.flow import (
    calls_in,
    handlers_of,
    in_finally,
    loop_of,
    only_notes,
    place,
    silenced,
    use_of,
    work_between,
)
from checkers.audit.python.names import Module

_SHAPES = {  # arguments that only one library's method of that name has
    "lock": ({"blocking_timeout", "thread_local", "timeout", "lock_class"}, "redis-py"),
}


def lock_facts(module: Module) -> list[Fact]:
    """All facts about lock objects in one file."""
    found: list[Fact] = []
    for node in module.nodes:
        if isinstance(node, ast.Call):
            library = library_of(module, node)
            if library is not None:
                found.append(_lock(module, node, library))
                if library.method_acquires:
                    found.append(_grant(module, node, node, library, "call"))
            found += _method(module, node)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                maker, library = maker_of(module, item.context_expr)
                if maker is not None and library is not None and not library.method_acquires:
                    found.append(_grant(module, item.context_expr, maker, library, "with", node))
    return found


def library_of(module: Module, call: ast.Call) -> Library | None:
    """The library whose lock this call makes, or None."""
    name = module.dotted(call.func)
    if name in MAKERS and MAKERS[name].name != "redlock-py":
        return MAKERS[name]
    if not isinstance(call.func, ast.Attribute):
        return None
    method = call.func.attr
    if not any(method == known for _, known in BY_METHOD):
        return None
    family = family_of(module, call.func.value)
    if family:
        return BY_METHOD.get((family, method))
    words = {k.arg for k in call.keywords}
    shape, library = _SHAPES.get(method, (set(), ""))
    return LIBRARIES[library] if library and words & shape else None


def family_of(module: Module, receiver: ast.expr) -> str:
    """What kind of client an expression is, or ""."""
    node = module.resolve(receiver)
    home = module.home(node)
    name = home.dotted(node.func) if isinstance(node, ast.Call) else home.dotted(node)
    prefixes = [prefix for prefix in CLIENTS if f"{name}.".startswith(prefix)]
    exact = [prefix for prefix in CLIENTS if name == prefix]
    if exact or prefixes:
        return CLIENTS[max(exact or prefixes, key=len)]
    if isinstance(node, ast.Name) and node.id in home.imports:
        return ""  # a module or function of something else: threading.Lock is not ours
    if isinstance(node, ast.Call) and name and "." in name:
        return ""
    tops = {whole.split(".")[0] + "." for whole in module.imports.values()}
    families = {CLIENTS[top] for top in tops if top in CLIENTS}
    return families.pop() if len(families) == 1 else ""


def maker_of(module: Module, node: ast.expr) -> tuple[ast.Call | None, Library | None]:
    """The call that made the lock which an expression stands for."""
    found = module.resolve(node)
    if not isinstance(found, ast.Call):
        return None, None
    library = library_of(module.home(found), found)
    return (found, library) if library is not None else (None, None)


def argument(call: ast.Call, names: tuple[str, ...], at: int) -> ast.expr | None:
    """An argument by keyword or position."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    return call.args[at] if 0 <= at < len(call.args) else None


def lease_values(module: Module, call: ast.Call, library: Library) -> dict[str, Any]:
    """lease_ns and what belongs to it; lease_ns is absent where it could not be found out."""
    by_method = isinstance(call.func, ast.Attribute) and call.func.attr == library.method
    at = library.method_lease_at if by_method else library.lease_at
    given = argument(call, library.lease_args, at)
    values: dict[str, Any] = {"lease": library.lease}
    if library.lease == "session":
        return values
    if given is None:
        if not any(k.arg is None for k in call.keywords):  # **options may hold it
            values["lease_ns"] = library.lease_default_ns
        return values
    found = module.resolve(given)
    if isinstance(found, ast.Constant) and found.value is None:
        values["lease_ns"] = library.lease_default_ns
        return values
    lease_ns = module.duration_ns(given, library.lease_unit_ns)
    values["lease_word"] = ast.unparse(given)
    values["lease_unit_ns"] = library.lease_unit_ns
    if lease_ns is not None:
        values["lease_ns"] = lease_ns
    return values


def _true(module: Module, call: ast.Call, names: tuple[str, ...]) -> bool:
    given = argument(call, names, -1)
    if given is None:
        return False
    found = module.resolve(given)
    return not (isinstance(found, ast.Constant) and found.value in (False, None))


def _lock(module: Module, call: ast.Call, library: Library) -> Fact:
    key = argument(call, ("name", "key", "resource", "path"), 0)
    values = {
        "library": library.name,
        "family": library.family,
        "key": None if key is None else module.text(key),
        "renewing": _true(module, call, library.renewing_args),
        **lease_values(module, call, library),
    }
    return Fact("lock", place(module, call), values, module.scope_name(call))


def _may_fail(module: Module, call: ast.Call, maker: ast.Call, library: Library) -> bool:
    """Whether this acquire can come back without the lock and without an error."""
    if library.acquire_fails_by == "raise":
        return False
    for source in (call, maker):
        positions = source.args if source is call and call is not maker else []
        for keyword in source.keywords:
            if keyword.arg not in library.wait_args:
                continue
            value = module.resolve(keyword.value)
            harmless = isinstance(value, ast.Constant) and value.value in (None, True)
            if not harmless:
                return True
            if keyword.arg == "timeout" and library.family == "etcd":
                return False  # None: waits for ever
        for value in positions:
            if not (isinstance(value, ast.Constant) and value.value in (None, True)):
                return True
    return not library.waits_for_ever


def _grant(
    module: Module,
    node: ast.expr,
    maker: ast.Call,
    library: Library,
    how: str,
    block: ast.With | ast.AsyncWith | None = None,
) -> Fact:
    call = node if isinstance(node, ast.Call) else maker
    values: dict[str, Any] = {
        "library": library.name,
        "family": library.family,
        "how": how,
        "use": "with" if block is not None else use_of(module, node),
        "with_raises": library.with_raises,
        "may_fail": _may_fail(module, call if how == "call" else maker, maker, library),
        "renewing": _true(module.home(maker), maker, library.renewing_args),
        **lease_values(module.home(maker), maker, library),
    }
    if block is not None:
        values |= {"end": block.end_lineno, "freed": True, "protected": True, "work": False}
    else:
        values |= _freed(module, node, library)
    return Fact("grant", place(module, node), values, module.scope_name(node))


def _freed(module: Module, node: ast.expr, library: Library) -> dict[str, Any]:
    """How the section that begins at this call ends, if it ends in the same function."""
    function = module.function_of(node) or module.tree
    func = node.func if isinstance(node, ast.Call) else None
    receiver = func.value if isinstance(func, ast.Attribute) else None
    frees: list[ast.Call] = []
    for call in calls_in(function, node.lineno, 1 << 30):
        if call is node or receiver is None or not isinstance(call.func, ast.Attribute):
            continue
        if ast.unparse(call.func.value) != ast.unparse(receiver):
            continue
        if call.func.attr == "acquire" and frees:
            break  # the section after this one
        if call.func.attr in library.releases_by:
            frees.append(call)
    if isinstance(receiver, ast.Name) and returned(function, receiver.id):
        frees = []  # handed to the caller: what is freed here is a way out before that
    end = frees[-1].lineno if frees else getattr(function, "end_lineno", 1 << 30)
    return {
        "end": end,
        "freed": bool(frees),
        "protected": any(in_finally(module, free) for free in frees),
        "work": bool(frees) and work_between(module, node, frees[-1]),
        "free_line": frees[-1].lineno if frees else 0,
    }


def returned(function: ast.AST, name: str) -> bool:
    """Whether a name is in something that a function gives back."""
    return any(
        isinstance(part, ast.Name) and part.id == name
        for node in ast.walk(function)
        if isinstance(node, ast.Return | ast.Yield) and node.value is not None
        for part in ast.walk(node.value)
    )


def _method(module: Module, call: ast.Call) -> list[Fact]:
    """Facts of a method call on a lock object."""
    if not isinstance(call.func, ast.Attribute):
        return []
    name = call.func.attr
    if name not in _METHODS:
        return []
    maker, library = maker_of(module, call.func.value)
    if name == "unlock" and family_of(module, call.func.value) == "redlock":
        maker, library = call, LIBRARIES["redlock-py"]
    if maker is None or library is None:
        return []
    if name == "acquire" and not library.method_acquires:
        return [_grant(module, call, maker, library, "call")]
    if name in library.renews_by:
        handlers = handlers_of(module, call)
        values = {
            "library": library.name,
            "family": library.family,
            "use": use_of(module, call),
            "fails_by": library.renew_fails_by,
            "swallowed": bool(handlers) and all(only_notes(h) for h in handlers),
            "guard": library.release_guard,
            **lease_values(module.home(maker), maker, library),
            **every(module, call),
        }
        return [Fact("renew", place(module, call), values, module.scope_name(call))]
    if name in library.releases_by:
        values = {
            "library": library.name,
            "family": library.family,
            "use": use_of(module, call),
            "guard": library.release_guard,
            "in_finally": in_finally(module, call),
            "silenced": silenced(module, call),
        }
        return [Fact("release", place(module, call), values, module.scope_name(call))]
    return []


_METHODS = {"acquire"} | {
    name for row in LIBRARIES.values() for name in (*row.renews_by, *row.releases_by)
}


def every(module: Module, call: ast.AST) -> dict[str, Any]:
    """How often a renewal in a loop is done: {"every_ns", "every_line"}, or nothing."""
    loop = loop_of(module, call)
    if loop is None:
        return {}
    for other in calls_in_node(loop):
        name = other.func.attr if isinstance(other.func, ast.Attribute) else ""
        whole = module.dotted(other.func)
        if whole in ("time.sleep", "asyncio.sleep", "gevent.sleep") or name == "wait":
            given = other.args[0] if other.args else argument(other, ("timeout",), -1)
            pause_ns = None if given is None else module.duration_ns(given, 1_000_000_000)
            if pause_ns is not None:
                return {"every_ns": pause_ns, "every_line": other.lineno}
    return {}


def calls_in_node(node: ast.AST) -> list[ast.Call]:
    """Calls below a node, in order."""
    return [n for n in ast.walk(node) if isinstance(n, ast.Call)]
