"""Where an answer goes and what encloses a call, in the common tree of the languages.

    use_of(call, 0)                 # "dropped", "checked", "unchecked", "used"
    in_finally(call)                # finally, ensure, defer, .finally(...)

Traps: this is syntax, not execution.  "checked" means that the answer reaches a condition, "used"
that somebody else gets it; whether the condition is the right one is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.audit.languages.tree import Node
from checkers.audit.languages.values import top_of

_COMPARES = {
    "==", "===", "!=", "!==", "~=", "<", ">", "<=", ">=", "&&", "||", "and", "or", "??", "!", "not",
}  # fmt: skip
_PASSES = {"Result", "Val", "catch", "toString", "booleanValue"}  # the answer goes on through these
_CLOSES = {"close", "Close", "dispose", "finalize"}
_NOTES = ("log", "console", "warn", "print", "puts", "fmt")


def function_of(node: Node) -> Node | None:
    """The innermost function around a node."""
    return next((p for p in node.above() if p.kind == "function"), None)


def scope_name(node: Node) -> str:
    """``Class.method`` around a node."""
    names = [p.name for p in node.above() if p.kind in ("function", "class") and p.name]
    return ".".join(reversed(names))


def use_of(call: Node, index: int = 0, *, by_error: bool = False) -> str:
    """What becomes of the answer of a call, or of its part number ``index``.

    by_error: ``.Err()`` says it as well.
    """
    node = call
    for parent in call.above():
        if parent.kind == "block":
            return "used" if _is_given_back(node, parent) else "dropped"
        if parent.kind == "assign" and parent.value is node:
            return "checked" if _is_tested(parent) else _use_of_target(parent, index)
        if parent.kind in ("return", "throw"):
            return "used"
        if parent.kind in ("if", "loop"):
            return "checked" if parent.test is node or node.within(parent.test) else "dropped"
        if parent.kind in ("unary", "binary"):
            if parent.name in _COMPARES:
                return "checked"
        elif parent.kind == "call" and parent.on is node:
            if parent.name == "Err" and not by_error:
                return "dropped"  # of SetNX: the error alone does not say who has the lock
            if parent.name not in _PASSES and parent.name != "Err":
                return "used"
        elif parent.name != "lexical_declaration":
            return "used"
        node = parent
    return "used"


def _is_tested(assign: Node) -> bool:
    """``x = take or return``, ``if (x = take)``: the assignment itself is looked at."""
    outer = assign.parent
    if outer is None:
        return False
    if outer.kind in ("unary", "binary"):
        return outer.name in _COMPARES
    return outer.kind in ("if", "loop") and outer.test is assign


def _is_given_back(node: Node, block: Node) -> bool:
    """Whether the last statement of a method of Ruby is its answer."""
    if not block.args or block.args[-1] is not node:
        return False
    top = block
    for parent in block.above():
        if parent.kind == "function":
            return parent.type == "last" and top.kind in ("block", "try", "if")
        if parent.kind not in ("block", "try", "if") or (
            parent.kind == "try" and parent.final is top
        ):
            return False
        top = parent
    return False


def _use_of_target(assign: Node, index: int) -> str:
    target = assign.targets[index] if index < len(assign.targets) else None
    if target is None and len(assign.targets) == 1:
        target = assign.targets[0]
    if target is None or target.kind != "name":
        return "used"
    if target.name == "_":
        return "dropped"
    return use_of_name(target, function_of(assign) or top_of(assign))


def use_of_name(target: Node, within: Node) -> str:
    """What is done with a name in a function."""
    worst = "unchecked"
    for node in within.walk():
        if node.kind != "name" or node.name != target.name or node is target:
            continue
        found = _reading(node)
        if found == "checked":
            return found
        worst = found or worst
    return worst


def _reading(name: Node) -> str:
    """ "checked", "used", or "" for a use that decides nothing."""
    node = name
    for parent in name.above():
        if parent.kind in ("if", "loop"):
            return "checked" if node.within(parent.test) else ""
        if parent.kind in ("return", "throw", "dict", "list", "field", "other"):
            return "used"
        if parent.kind in ("unary", "binary") and parent.name in _COMPARES:
            return "checked"
        if parent.kind == "call":
            return "" if decides_nothing(parent) else "used"
        if parent.kind == "assign":
            return "" if any(node.within(t) for t in parent.targets) else "used"
        if parent.kind in ("block", "function"):
            return ""
        node = parent
    return ""


def decides_nothing(call: Node) -> bool:
    """Whether a call that gets a name only gives a lock back, lengthens it or writes a log."""
    if call.name.lower() in ("unlock", "release", "extend", "refresh", "del", "delete", "eval"):
        return True
    start = call.on.dotted().lower() if call.on is not None else call.name.lower()
    return start.startswith(_NOTES)


def in_finally(node: Node) -> bool:
    """Whether a call is made on every way out of the function that it stands in."""
    child = node
    for parent in node.above():
        if parent.kind == "try" and parent.final is child:
            return True
        if parent.kind == "defer":
            return True
        if parent.kind == "call" and parent.name == "finally" and child in parent.args:
            return True
        if parent.kind == "function" and parent.name in _CLOSES:
            return True
        child = parent
    return False


def is_inside(node: Node, function: Node) -> bool:
    """Whether a call runs as part of a function: no other function between, but deferred ones."""
    child = node
    for parent in node.above():
        if parent is function:
            return True
        if parent.kind == "function":
            above = list(parent.above())
            runs_here = any(p.kind == "defer" for p in above[:3]) or (
                bool(above) and above[0].kind == "call" and above[0].name in ("finally", "begin")
            )
            if not runs_here:
                return False
        child = parent
    return child is function


def handlers_of(node: Node) -> list[Node]:
    """The catch clauses that an error of this call meets first."""
    child = node
    for parent in node.above():
        if parent.kind == "try" and parent.body is child:
            return parent.handlers
        if parent.kind == "call" and parent.name == "catch" and parent.on is child:
            return parent.args[:1]
        if parent.kind == "function":
            return []
        child = parent
    return []


def only_notes(handler: Node) -> bool:
    """Whether a catch clause does nothing but log."""
    body = handler.body
    statements = [] if body is None else (body.args if body.kind == "block" else [body])
    return all(
        (s.kind == "call" and _notes(s)) or s.kind == "const" or "comment" in s.name
        for s in statements
    )


def silenced(node: Node) -> bool:
    """Whether an error of this call vanishes in an empty catch clause."""
    return any(_empty(h) for h in handlers_of(node))


def _empty(handler: Node) -> bool:
    body = handler.body
    if body is None:
        return handler.kind == "handler"
    return body.kind == "block" and not body.args


def _notes(call: Node) -> bool:
    start = call.on.dotted().lower() if call.on is not None else call.name.lower()
    return start.startswith(_NOTES) or "log" in start


def loop_of(node: Node) -> Node | None:
    """The innermost loop around a node, within its function."""
    for parent in node.above():
        if parent.kind == "loop":
            return parent
        if parent.kind == "function":
            return None
    return None


def calls_in(node: Node, first: int, last: int) -> Iterator[Node]:
    """Calls below a node between two lines, in the order of the text."""
    found = [n for n in node.walk() if n.kind == "call" and first <= n.line <= last]
    yield from sorted(found, key=lambda n: (n.line, n.column))
