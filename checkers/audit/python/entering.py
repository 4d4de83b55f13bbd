"""Ways into the critical section other than having got the lock.

Facts: open (an error of the acquire leads on into the work): how; merged (an error of the server is
answered like "busy"): error; dead_branch (what is done when a lock was not got that is waited for
without end); local_lock (a lock of this process around a write to the outside).

Traps: a handler that raises, returns or goes to the next turn leads away from the work; only one
that goes on is a way in.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from checkers.audit.knowledge import LIBRARIES
from checkers.audit.model import Fact
from checkers.audit.python.locks import maker_of
from checkers.audit.python.names import Module
from checkers.audit.python.scene import Scene, calls, leads_away, leaves

_BROAD = re.compile(
    r"(?:^|\.)(?:Exception|BaseException|RedisError|ConnectionError|TimeoutError|KazooException"
    r"|OperationalError|InterfaceError|Etcd3Exception|OSError|Error)$"
)
_LOCAL = {
    "threading.Lock", "threading.RLock", "asyncio.Lock", "multiprocessing.Lock",
    "threading.Semaphore", "asyncio.Semaphore",
}  # fmt: skip
_NULL = re.compile(r"(?:^|\.)(?:nullcontext|NullLock|DummyLock|NoopLock|NoOpLock|FakeLock)$")
_WRITES = re.compile(r"^\s*(?:update|insert|delete)\s", re.I)


def entering_facts(scene: Scene) -> list[Fact]:
    """All facts about ways in, of one file."""
    found: list[Fact] = []
    for grant, node in scene.grants():
        if grant.get("how") == "call":
            found += _handlers(scene, grant, node)
            found += _dead_branch(scene, grant, node)
    for block in scene.module.nodes:
        if isinstance(block, ast.With | ast.AsyncWith):
            for item in block.items:
                found += _null(scene, item.context_expr)
                found += _local(scene, item.context_expr, block)
    return found


def _handlers(scene: Scene, grant: Fact, node: ast.expr) -> list[Fact]:
    child: Any = node
    for parent in scene.module.above(node):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return []
        if isinstance(parent, ast.Try) and child in parent.body:
            return [f for h in parent.handlers for f in _handler(scene, grant, node, parent, h)]
        child = parent
    return []


def _handler(
    scene: Scene, grant: Fact, node: ast.expr, whole: ast.Try, handler: ast.ExceptHandler
) -> list[Fact]:
    names = _names(scene.module, handler)
    common = {"library": grant.get("library"), "error": " or ".join(names)}
    broad = any(_BROAD.search(name) for name in names)
    returns = [n for s in handler.body for n in leaves(s) if isinstance(n, ast.Return)]
    if broad and any(_says_no(n.value) for n in returns) and not _raises(handler):
        return [scene.fact("merged", handler, **common)]
    if leads_away(handler.body):
        return []
    ends_with = whole.body[-1]
    alone = node in set(ast.walk(ends_with)) or not any(
        c.lineno > node.lineno for s in whole.body for c in calls(s)
    )
    sets_true = any(
        isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant) and n.value.value is True
        for s in handler.body
        for n in leaves(s)
    )
    if alone and broad and (sets_true or grant.get("use") == "dropped") and _goes_on(scene, whole):
        return [scene.fact("open", handler, how="handler", **common)]
    return []


def _names(module: Module, handler: ast.ExceptHandler) -> list[str]:
    if handler.type is None:
        return ["Exception"]
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [module.dotted(part) or ast.unparse(part) for part in parts]


def _says_no(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value in (False, None))


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(n, ast.Raise) for s in handler.body for n in leaves(s))


def _goes_on(scene: Scene, whole: ast.Try) -> bool:
    """Whether work follows the try statement."""
    parent = scene.module.parent.get(whole)
    for body in (getattr(parent, "body", []), getattr(parent, "orelse", [])):
        if whole in body:
            after = body[body.index(whole) + 1 :]
            return any(isinstance(n, ast.Call) for s in after for n in leaves(s))
    return False


def _dead_branch(scene: Scene, grant: Fact, node: ast.expr) -> list[Fact]:
    library = LIBRARIES.get(str(grant.get("library")))
    if library is None or grant.get("may_fail") or not library.waits_for_ever:
        return []
    if library.acquire_fails_by != "false" or _hidden(scene, node):
        return []
    parent = scene.module.parent.get(node)
    if isinstance(parent, ast.Await):
        parent = scene.module.parent.get(parent)
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        above = scene.module.parent.get(parent)
        if isinstance(above, ast.If) and above.test is parent:
            return [scene.fact("dead_branch", above.body[0], library=library.name)]
    return []


def _hidden(scene: Scene, node: ast.expr) -> bool:
    """Whether an argument may hide a limit: **options of the acquire or of the lock's maker."""
    sources = [node] if isinstance(node, ast.Call) else []
    if sources and isinstance(sources[0].func, ast.Attribute):
        maker, _ = maker_of(scene.module, sources[0].func.value)
        sources += [maker] if maker is not None else []
    return any(k.arg is None for c in sources for k in c.keywords)


def _null(scene: Scene, item: ast.expr) -> list[Fact]:
    choices: list[ast.expr] = []
    whole = scene.module.resolve(item)
    if isinstance(whole, ast.IfExp):
        choices = [whole.body, whole.orelse]
    elif isinstance(whole, ast.BoolOp):
        choices = list(whole.values)
    nulls = [
        c for c in choices if isinstance(c, ast.Call) and _NULL.search(scene.module.dotted(c.func))
    ]
    locks = [lib for c in choices for _, lib in [maker_of(scene.module, c)] if lib is not None]
    if not nulls or not locks:
        return []
    word = ast.unparse(nulls[0].func)
    return [scene.fact("open", item, how="null", error=word, library=locks[0].name)]


def _local(scene: Scene, item: ast.expr, block: ast.With | ast.AsyncWith) -> list[Fact]:
    made = scene.module.resolve(item)
    if not isinstance(made, ast.Call) or scene.module.dotted(made.func) not in _LOCAL:
        return []
    for call in calls(block):
        text = scene.module.text(call.args[0]) if call.args else None
        executes = isinstance(call.func, ast.Attribute) and call.func.attr == "execute"
        posts = scene.name(call) in ("requests.post", "requests.put", "httpx.post", "httpx.put")
        if posts or (executes and text and _WRITES.match(text)):
            what = scene.module.dotted(made.func)
            return [scene.fact("local_lock", item, what=what, write_line=call.lineno)]
    return []
