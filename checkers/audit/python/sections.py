"""What is done between grant and release, and around them.

Facts: outlives (work that goes on after the release): what; blocked_loop (a call that stops the
event loop while a task of it renews): what; outer (a transaction or a pooled connection around the
lock): what; commit_after (the commit of a protected write comes after the release); unwatched (a
long section of a session lock in a program that listens to no loss); deaf (a listener that only
notes); cleared (local state forgotten before the release): word; token_order (a write whose token
is fresh and so has no order); index_build (an index is built concurrently under a lock).

Traps: a thread that renews is started inside on purpose; what is joined or awaited inside does not
outlive the section.
"""

from __future__ import annotations

import ast
import re

from checkers.audit.model import Fact
from checkers.audit.python.flow import calls_in, only_notes
from checkers.audit.python.raw import token_of
from checkers.audit.python.scene import Scene, calls, last, leaves

_RENEWS = re.compile(r"renew|extend|heartbeat|keep_?alive|watchdog|refresh", re.I)
_JOINS = {"join", "result", "wait", "gather", "communicate", "as_completed", "shutdown", "get"}
_STARTS = {
    "asyncio.create_task", "asyncio.ensure_future", "subprocess.Popen", "loop.create_task",
}  # fmt: skip
_BLOCKS = re.compile(
    r"^(?:time\.sleep|requests\.\w+|subprocess\.(?:run|call|check_call|check_output)|os\.system"
    r"|urllib\.request\.urlopen|shutil\.copytree)$"
)
_TRANSACTION = re.compile(r"(?:^|\.)(?:atomic|transaction|begin|begin_nested)(?:\.\(\))?$")
_POOLED = re.compile(r"(?:pool|engine)\w*\.(?:connection|connect|acquire|getconn|begin)$", re.I)
_STATE = re.compile(r"token|owner|held|holding|locked|lock_id|acquired|is_leader|lease", re.I)
_FENCE = re.compile(r"\b\w*(?:fence|token|epoch)\w*\s*(?:<|>|<=|>=)\s*(?:%s|:|\?|\$)", re.I)


def section_facts(scene: Scene) -> list[Fact]:
    """All facts about sections of one file."""
    found: list[Fact] = []
    for grant, node in scene.grants():
        inside = scene.section(grant, node)
        if grant.get("freed"):
            found += _outlives(scene, grant, inside)
            found += _commit_after(scene, grant, node, inside)
        found += _blocked(scene, grant, node, inside)
        found += _outer(scene, grant, node)
        found += _unwatched(scene, grant, node)
        found += _index(scene, grant, inside)
    for fact, node in scene.of("release"):
        found += _cleared(scene, fact, node)
    for fact, node in scene.of("write"):
        found += _order(scene, fact, node)
    found += _deaf(scene)
    return found


def _outlives(scene: Scene, grant: Fact, inside: list[ast.Call]) -> list[Fact]:
    if any(last(c) in _JOINS for c in inside):
        return []
    for call in inside:
        if _RENEWS.search(ast.unparse(call)):
            continue
        name, what = scene.name(call), ""
        if name in _STARTS:
            what = name
        elif last(call) == "start" and isinstance(call.func, ast.Attribute):
            made = scene.module.resolve(call.func.value)
            if isinstance(made, ast.Call):
                maker = scene.module.dotted(made.func)
                if maker in ("threading.Thread", "multiprocessing.Process", "threading.Timer"):
                    what = "" if _RENEWS.search(ast.unparse(made)) else maker
        elif last(call) in ("submit", "apply_async", "delay", "send_task"):
            what = last(call)
        if what and not _awaited(scene, call):
            values = {"what": what, "library": grant.get("library"), "line": grant.place.line}
            return [scene.fact("outlives", call, **values)]
    return []


def _awaited(scene: Scene, call: ast.Call) -> bool:
    """Whether what is started is waited for: awaited, or in a block that waits at its end."""
    for parent in scene.module.above(call):
        if isinstance(parent, ast.Await):
            return True
        if isinstance(parent, ast.With | ast.AsyncWith):
            for item in parent.items:
                made = scene.module.resolve(item.context_expr)
                if isinstance(made, ast.Call) and re.search(
                    r"Executor|TaskGroup|Popen|Pool$", scene.module.dotted(made.func)
                ):
                    return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return any(isinstance(n, ast.Await) and isinstance(n.value, ast.Name)
                       and n.lineno > call.lineno for n in ast.walk(parent))  # fmt: skip
    return False


def _blocked(scene: Scene, grant: Fact, node: ast.expr, inside: list[ast.Call]) -> list[Fact]:
    function = scene.function(node)
    if not isinstance(function, ast.AsyncFunctionDef):
        return []
    tasks = any(
        scene.name(c) in ("asyncio.create_task", "asyncio.ensure_future")
        and _RENEWS.search(ast.unparse(c))
        for group in ("create_task", "ensure_future")
        for c in scene.module.calls.get(group, [])
    )
    if not tasks and not grant.get("renewing"):
        return []
    for call in inside:
        name = scene.name(call)
        if _BLOCKS.match(name):
            return [scene.fact("blocked_loop", call, what=name, library=grant.get("library"))]
    return []


def _outer(scene: Scene, grant: Fact, node: ast.expr) -> list[Fact]:
    if grant.get("lease") == "transaction" or grant.get("library") == "advisory lock":
        return []
    for parent in scene.module.above(node):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return []
        if not isinstance(parent, ast.With | ast.AsyncWith):
            continue
        for item in parent.items:
            if item.context_expr is node or node in set(ast.walk(item.context_expr)):
                break
            made = scene.module.resolve(item.context_expr)
            name = scene.module.dotted(made) if not isinstance(made, ast.Call) else ""
            if isinstance(made, ast.Call):
                name = scene.module.dotted(made.func) or ast.unparse(made.func)
            what = "transaction" if _TRANSACTION.search(name) else ""
            if not what and _POOLED.search(name):
                what = "connection"
            if what:
                values = {"what": what, "outer": name, "line": parent.lineno}
                return [scene.fact("outer", node, library=grant.get("library"), **values)]
    return []


def _commit_after(scene: Scene, grant: Fact, node: ast.expr, inside: list[ast.Call]) -> list[Fact]:
    if grant.get("lease") == "transaction" or any(last(c) == "commit" for c in inside):
        return []
    writes = [
        c
        for c in inside
        if last(c) == "execute" and c.args
        and re.match(r"\s*(?:update|insert|delete)\s", scene.module.text(c.args[0]) or "", re.I)
    ]  # fmt: skip
    if not writes:
        return []
    end = max(int(grant.get("end") or 0), int(grant.get("free_line") or 0))
    after = [c for c in calls_in(scene.function(node), end + 1, 1 << 30) if last(c) == "commit"]
    if not after:
        return []
    values = {"library": grant.get("library"), "write_line": writes[0].lineno}
    return [scene.fact("commit_after", after[0], **values)]


def _unwatched(scene: Scene, grant: Fact, node: ast.expr) -> list[Fact]:
    if grant.get("family") != "zookeeper" or not grant.get("freed"):
        return []
    last_line = int(grant.get("end") or 0)
    loops = [
        n
        for n in ast.walk(scene.function(node))
        if isinstance(n, ast.While) and grant.place.line < n.lineno <= last_line
    ]
    looks = re.compile(r"\.(?:state|connected|is_acquired|client_state|lost|is_set)\b")
    for loop in loops:
        if not looks.search(ast.unparse(loop.test)) and not any(
            isinstance(n, ast.If) and looks.search(ast.unparse(n.test)) for n in ast.walk(loop)
        ):
            return [scene.fact("unwatched", loop, library=grant.get("library"))]
    return []


def _deaf(scene: Scene) -> list[Fact]:
    """Listeners of connection states: their bodies, and that there are any."""
    found: list[Fact] = []
    names = set()
    for call in scene.module.calls.get("add_listener", []):
        found.append(scene.fact("listener", call))
        names |= {a.id for a in call.args if isinstance(a, ast.Name)}
    for node in scene.module.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorated = any(
            isinstance(d, ast.Attribute) and d.attr == "add_listener" for d in node.decorator_list
        )
        if decorated:
            found.append(scene.fact("listener", node))
        if decorated or node.name in names:
            handler = ast.ExceptHandler(type=None, name=None, body=_acts(node.body))
            if only_notes(handler):
                found.append(scene.fact("deaf", node, what=node.name))
    return found


def _acts(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body, those under its conditions included."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If):
            found += [*_acts(statement.body), *_acts(statement.orelse)]
        else:
            found.append(statement)
    return found


def _cleared(scene: Scene, fact: Fact, node: ast.expr) -> list[Fact]:
    function = scene.module.function_of(node)
    if function is None or getattr(function, "name", "") == "__init__":
        return []  # a constructor holds nothing yet, and only registers its scripts
    for statement in leaves(function):
        if not isinstance(statement, ast.Assign) or statement.lineno >= node.lineno:
            continue
        target, value = statement.targets[0], statement.value
        if (
            isinstance(target, ast.Attribute)
            and isinstance(value, ast.Constant)
            and value.value in (None, False)
            and _STATE.search(target.attr)
        ):
            word = ast.unparse(target)
            return [scene.fact("cleared", statement, word=word, line=node.lineno)]
    return []


def _order(scene: Scene, fact: Fact, node: ast.expr) -> list[Fact]:
    if not fact.get("fenced") or not isinstance(node, ast.Call):
        return []
    text = scene.module.text(node.args[0]) if node.args else None
    if not text or not _FENCE.search(text):
        return []
    for given in node.args[1:]:
        parts = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
        if isinstance(given, ast.Dict):
            parts = list(given.values)
        for part in parts:
            found = scene.module.resolve(part)
            if token_of(scene.module, part) == "fresh" and re.search(
                r"uuid|secrets|urandom|random", ast.unparse(found)
            ):
                return [scene.fact("token_order", node, word=ast.unparse(part))]
    return []


def _index(scene: Scene, grant: Fact, inside: list[ast.Call]) -> list[Fact]:
    for call in inside:
        text = scene.module.text(call.args[0]) if call.args else None
        found = text and re.search(r"index\s+concurrently", text, re.I)
        if found and grant.get("family") == "postgres":
            return [scene.fact("index_build", call, library=grant.get("library"))]
    return []


__all__ = ["calls", "section_facts"]
