"""How the section that begins at a grant ends, and what is done in it, in four languages.

    section(names, grant, frees)      # {"freed", "protected", "work", "end", "free_line"}
    inside(names, fact, call)         # facts "write" and "wait" of the section

Traps: in Go work does not raise, so what jumps over a release is a return in between; elsewhere it
is any call.  A release in a function that runs later is not seen as the end of this section.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from checkers.audit.languages.flow import (
    calls_in,
    decides_nothing,
    function_of,
    in_finally,
    is_inside,
    loop_of,
    scope_name,
)
from checkers.audit.languages.tree import Node
from checkers.audit.languages.values import Names
from checkers.audit.model import Fact, Place

MS, S = 1_000_000, 1_000_000_000
TOKEN = re.compile(r"fenc|token|epoch|version|generation|revision|xmin|etag|if_?match|term\b", re.I)
_RUNS_SQL = {
    "query", "execute", "exec", "Exec", "ExecContext", "exec_query", "exec_update", "update",
    "executeUpdate", "prepareStatement", "createNativeQuery", "raw", "run", "none", "Query",
    "exec_params", "executeRaw",
}  # fmt: skip
_EVERY = {"scheduleAtFixedRate", "scheduleWithFixedDelay"}


def place(names: Names, node: Node) -> Place:
    """Where a node stands."""
    return Place(names.home(node).path, node.line, node.end_line, node.column)


def statement_of(node: Node) -> Node:
    """The statement that a node is part of."""
    child = node
    for parent in node.above():
        if parent.kind in ("block", "function", "class"):
            return child
        child = parent
    return child


def returned(function: Node, name: str) -> bool:
    """Whether a function gives a name back, itself or in something that holds it."""
    return any(
        part.kind == "name"
        and part.name == name
        and not (part.parent is not None and part.parent.on is part)
        for node in function.walk()
        if node.kind == "return"
        for part in node.walk()
    )


def section(
    names: Names, grant: Node, found: Iterable[Node], takes: Iterable[Node] = ()
) -> dict[str, Any]:
    """How a section ends; ``found`` are the calls of the file that free this lock.

    takes: the calls that take it again, each of which begins a section of its own.
    """
    function = function_of(grant) or names.home(grant).root
    own = [f for f in found if f.within(function)]
    later = [f for f in own if not is_inside(f, function)]
    after = (grant.line, grant.column)
    frees = [f for f in own if f not in later and ((f.line, f.column) > after)]
    again = {(t.line, t.column) for t in takes if t.within(function)} - {after}
    frees = _until(frees, again)
    if later and not any(in_finally(f) for f in frees):
        frees = []  # somebody frees it in a function that runs some other time
    deferred = [f for f in frees if any(p.kind == "defer" for p in f.above())]
    end = function.end_line if deferred or not frees else frees[-1].line
    return {
        "end": end,
        "freed": bool(frees),
        "protected": any(in_finally(f) for f in frees) or _in_both(frees),
        "work": bool(frees) and _work(names, function, grant, frees),
        "free_line": frees[-1].line if frees else 0,
    }


def _until(frees: list[Node], again: set[tuple[int, int]]) -> list[Node]:
    """The releases before the lock is taken again; what a deferred one frees is not in order."""
    kept: list[Node] = []
    for free in frees:
        first = (kept[0].line, kept[0].column) if kept else None
        if first and any(first < at < (free.line, free.column) for at in again):
            break
        kept.append(free)
    return kept


def _in_both(frees: list[Node]) -> bool:
    """Whether it is freed in a catch clause and also where nothing went wrong."""
    caught = [f for f in frees if any(p.kind == "handler" for p in f.above())]
    return bool(caught) and len(caught) < len(frees)


def _guards(grant: Node, frees: list[Node]) -> list[Node]:
    """Branches that are taken where the lock was refused: they leave, and free nothing."""
    own = statement_of(grant)
    names = {t.name for t in own.targets} if own.kind == "assign" else set()
    for inner in own.args if own.kind == "if" else []:
        names |= {t.name for t in inner.targets}
    found = [own] if own.kind == "if" else []
    siblings = own.parent.args if own.parent is not None and own.parent.kind == "block" else []
    at = next((i for i, s in enumerate(siblings) if s is own), len(siblings))
    for other in siblings[at + 1 :]:
        tested = other.test
        if other.kind != "if" or tested is None or other.args:
            break  # something else happens first, and its answer is what is tested
        if not any(n.kind == "name" and n.name in names for n in tested.walk()):
            break
        found.append(other)
    branches = [b for node in found for b in (node.body, node.other) if b is not None]
    return [b for b in branches if not any(f.within(b) for f in frees)]


def _work(names: Names, function: Node, grant: Node, frees: list[Node]) -> bool:
    """Whether something between grant and release can jump over the release."""
    guards = _guards(grant, frees)
    first, last = grant.end_line, max(f.line for f in frees)
    if names.home(grant).language == "go":
        return any(
            node.kind == "return"
            and first < node.line < last
            and is_inside(node, function)
            and not any(node.within(g) for g in guards)
            and not _freed_before(node, frees)
            for node in function.walk()
        )
    works = list(calls_in(function, first, last))
    if names.home(grant).language == "ruby":  # a bare word that is a statement is a call
        works += [n for n in function.walk() if n.kind == "name" and _is_statement(n)]
    return any(
        first < call.line
        and call.end_line < last
        and call not in frees
        and not decides_nothing(call)
        and is_inside(call, function)
        and not any(call.within(g) for g in guards)
        for call in works
    )


def _is_statement(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.kind == "block" and parent.args[-1] is not node


def _freed_before(leaving: Node, frees: list[Node]) -> bool:
    block = leaving.parent
    while block is not None and block.kind != "block":
        block = block.parent
    return any(f.within(block) and (f.line, f.column) < (leaving.end_line, 1 << 20) for f in frees)


def inside(names: Names, grant: Fact, at: Node) -> Iterator[Fact]:
    """Writes and pauses of a section that this fact begins."""
    around = function_of(at) or names.home(at).root
    if at.block is not None:
        around = at.block
    elif grant.get("how") == "with" and at.args:
        around = at.args[-1]
    if grant.get("around") is not None:
        around = grant.get("around")
    first = grant.place.line if grant.get("how") == "with" else grant.place.end_line + 1
    common = {"grant_line": grant.place.line, "library": grant.get("library")}
    common["language"] = grant.get("language")
    for call in calls_in(around, first, int(grant.get("end") or 0)):
        what = written(names, call)
        if what and is_inside(call, around):
            fenced = bool(TOKEN.search(what) or any(TOKEN.search(n.name) for n in call.walk()))
            values = {
                **common, "what": what, "fenced": fenced,
                "lease": grant.get("lease"), "freed": grant.get("freed"),
            }  # fmt: skip
            yield Fact("write", place(names, call), values, scope_name(call))
            continue
        pause_ns = slept_ns(names, call)
        if pause_ns is not None and (is_inside(call, around) or _is_promise(call)):
            values = {**common, "pause_ns": pause_ns, "lease_ns": grant.get("lease_ns")}
            values |= {"renewing": grant.get("renewing"), "freed": grant.get("freed")}
            yield Fact("wait", place(names, call), values, scope_name(call))


def written(names: Names, call: Node) -> str:
    """The UPDATE that a call runs; "" if it runs none."""
    if call.name not in _RUNS_SQL or call.on is None:
        return ""
    for arg in call.args[:2]:
        text = names.text(arg)
        if text is not None and re.match(r"\s*update\s+\S+\s+set\b", text, re.I):
            return text
    return ""


def slept_ns(names: Names, call: Node) -> int | None:
    """How long a call pauses; None if it does not, or if that is not known."""
    language = names.home(call).language
    if not call.args:
        return None
    if language == "go":
        return names.duration_ns(call.args[0], 1) if call.dotted() == "time.Sleep()" else None
    if language == "java":
        if call.dotted() == "Thread.sleep()":
            return names.duration_ns(call.args[0], MS)
        unit = names.unit_of(call.on) if call.on is not None and call.name == "sleep" else 0
        return names.duration_ns(call.args[0], unit) if unit else None
    if language == "ruby":
        if call.name == "sleep" and (call.on is None or call.on.name == "Kernel"):
            return names.duration_ns(call.args[0], S)
        return None
    if call.name == "setTimeout" and call.on is None:
        if names.home(call).imports.get("setTimeout", "").endswith("promises:setTimeout"):
            return names.duration_ns(call.args[0], MS)
        if len(call.args) == 2 and _is_promise(call):
            return names.duration_ns(call.args[1], MS)
        return None
    return names.duration_ns(call.args[0], MS) if _is_helper(names, call) else None


def _is_promise(call: Node) -> bool:
    """new Promise(resolve => setTimeout(resolve, ms))."""
    function = function_of(call)
    if call.name != "setTimeout" or function is None or not function.params or not call.args:
        return False
    outer = function.parent
    made = outer is not None and outer.kind == "call" and outer.name == "Promise"
    return made and call.args[0].name == function.params[0].name


def _is_helper(names: Names, call: Node) -> bool:
    """Whether a function of one parameter of this file is that promise."""
    if call.on is not None or len(call.args) != 1:
        return False
    for node in names.home(call).nodes:
        made = node
        if node.kind == "assign" and node.targets and node.targets[0].name == call.name:
            made = node.value
        elif node.kind != "function" or node.name != call.name:
            continue
        if made is None or made.kind != "function" or len(made.params) != 1:
            continue
        for inner in made.walk():
            if inner.kind == "call" and _is_promise(inner) and len(inner.args) == 2:
                return inner.args[1].name == made.params[0].name
    return False


def every(names: Names, call: Node) -> dict[str, Any]:
    """How often a renewal is done: {"every_ns", "every_line"}, or nothing."""
    for parent in call.above():
        if parent.kind != "call":
            continue
        if parent.name == "setInterval" and len(parent.args) == 2:
            return _known(names.duration_ns(parent.args[1], MS), parent)
        if parent.name in _EVERY and len(parent.args) == 4:
            unit = names.unit_of(parent.args[3])
            return _known(names.duration_ns(parent.args[2], unit), parent)
    loop = loop_of(call)
    for other in [] if loop is None else loop.walk():
        if other.kind == "call":
            pause_ns = slept_ns(names, other)
            if pause_ns is None and other.dotted() in ("time.After()", "time.Tick()"):
                pause_ns = names.duration_ns(other.args[0], 1)
            if pause_ns is not None:
                return _known(pause_ns, other)
        elif other.kind == "field" and other.name == "C" and other.on is not None:
            made = names.resolve(other.on)
            if made.kind == "call" and made.dotted() == "time.NewTicker()" and made.args:
                return _known(names.duration_ns(made.args[0], 1), made)
    return {}


def _known(pause_ns: int | None, at: Node) -> dict[str, Any]:
    return {} if pause_ns is None else {"every_ns": pause_ns, "every_line": at.line}
