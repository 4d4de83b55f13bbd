"""What is done about locks of others: takeovers, clean-up, state that was read before the grant.

Facts: takeover: what ("pid", "age"); flush (locks are swept away when a program starts): what;
stale (a state that was read before the lock is written under it): key; cancelled (an acquire that a
time limit cancels); quorum_left (locks of several servers, not given back where too few agreed);
signal (a waiter for a lock that listens for a word and looks by no timer): word.

Traps: an acquire by several servers that fails and deletes on all of them is right.
"""

from __future__ import annotations

import ast
import re

from checkers.audit.lockish import says_lock
from checkers.audit.model import Fact
from checkers.audit.python.flow import loop_of
from checkers.audit.python.locks import maker_of
from checkers.audit.python.scene import Scene, calls, last

_STARTUP = re.compile(
    r"^(?:main|init\w*|start\w*|setup\w*|boot\w*|ready|__init__|on_start\w*|run_server|create_app"
    r"|lifespan)$"
)
_READS = {"get", "exists", "hget", "first", "fetchone", "scalar", "filter"}
_SETS = {"set", "setex", "hset", "put", "add", "save", "create"}
# Redis commands that wait for an element, with the place of their time limit.
_WAITS = {"blpop": 1, "brpop": 1, "bzpopmin": 1, "bzpopmax": 1, "brpoplpush": 2, "blmove": 2}
_TOOLS = ("delete", "unlink", "remove", "rmtree", "unlink_missing")


def recovery_facts(scene: Scene) -> list[Fact]:
    """All facts about takeovers and clean-up of one file."""
    found: list[Fact] = []
    removes = {*_TOOLS, "flushdb", "flushall"} & set(scene.module.calls)  # most files have none
    for function in scene.module.nodes if removes else ():
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            found += _takeover(scene, function)
            if _STARTUP.match(function.name):
                found += _flush(scene, function)
    for statement in scene.module.tree.body if removes else ():
        if isinstance(statement, ast.Expr | ast.If):
            found += _flush(scene, statement)
    for grant, node in scene.grants():
        found += _stale(scene, grant, node)
        found += _quorum(scene, grant, node)
    for word, place in _WAITS.items():
        for call in scene.module.calls.get(word, []):
            if _waits_for_ever(scene, call, place) and _for_a_lock(scene, call):
                found.append(scene.fact("signal", call, word=word))
    for call in scene.module.calls.get("wait_for", []):
        if scene.module.dotted(call.func) == "asyncio.wait_for" and call.args:
            inner = call.args[0]
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                maker, library = maker_of(scene.module, inner.func.value)
                if inner.func.attr == "acquire" and maker is not None and library is not None:
                    found.append(scene.fact("cancelled", call, library=library.name))
    return found


def _waits_for_ever(scene: Scene, call: ast.Call, place: int) -> bool:
    """Whether its time limit is 0, None or not given; what cannot be followed is no finding."""
    given = next((word.value for word in call.keywords if word.arg == "timeout"), None)
    if given is None and any(word.arg is None for word in call.keywords):
        return False
    if given is None and len(call.args) > place:
        given = call.args[place]
    if given is None:
        return isinstance(call.func, ast.Attribute) and bool(call.args)
    value = scene.module.resolve(given)
    return isinstance(value, ast.Constant) and value.value in (0, None)


def _for_a_lock(scene: Scene, call: ast.Call) -> bool:
    """Whether it waits for a lock, by its key or by what it stands in."""
    key = call.args[0]
    names = [ast.unparse(key), ast.unparse(scene.module.resolve(key))]
    for parent in scene.module.above(call):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(parent.name)
    return any(says_lock(name) for name in names)


def _takeover(scene: Scene, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Fact]:
    own = calls(function)
    removes = [c for c in own if last(c) in _TOOLS or scene.name(c) == "os.remove"]
    if not removes or not re.search(r"lock|lease|leader|mutex", ast.unparse(function), re.I):
        return []
    for call in own:
        name = scene.name(call)
        by_pid = name == "psutil.pid_exists" or (
            name == "os.kill" and len(call.args) > 1 and scene.module.number(call.args[1]) == 0
        )
        if by_pid:
            return [scene.fact("takeover", call, what="pid", line=removes[0].lineno)]
    for branch in ast.walk(function):
        if not isinstance(branch, ast.If):
            continue
        test = ast.unparse(branch.test)
        resolved = " ".join(
            ast.unparse(scene.module.resolve(n))
            for n in ast.walk(branch.test)
            if isinstance(n, ast.Name)
        )
        aged = re.search(r"time\.time\(\)|datetime\.(?:now|utcnow)\(", test + resolved)
        read = re.search(r"\.(?:get|hget|fetchone)\(", test + resolved)
        inner = [c for s in branch.body for c in calls(s) if last(c) in _TOOLS]
        if aged and read and inner:
            return [scene.fact("takeover", inner[0], what="age", line=branch.lineno)]
    return []


def _flush(scene: Scene, node: ast.AST) -> list[Fact]:
    for call in calls(node):
        name = last(call)
        if name in ("flushdb", "flushall", "FlushAll"):
            return [scene.fact("flush", call, what=name)]
        if name in ("delete", "unlink") and call.args:
            given = call.args[0]
            inner = given.value if isinstance(given, ast.Starred) else given
            text = ast.unparse(scene.module.resolve(inner)) + ast.unparse(inner)
            loop = loop_of(scene.module, call)
            text += ast.unparse(loop.iter) if isinstance(loop, ast.For) else ""
            if re.search(r"\.(?:keys|scan_iter|scan)\(", text) and re.search(
                r"lock|lease|leader|mutex", text, re.I
            ):
                return [scene.fact("flush", call, what="the keys of all locks")]
    return []


def _stale(scene: Scene, grant: Fact, node: ast.expr) -> list[Fact]:
    child: ast.AST = node
    for parent in scene.module.above(node):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return []
        if isinstance(parent, ast.If) and child in (*parent.body, *parent.orelse):
            before = {_subject(scene, c) for c in _read_calls(scene, parent.test)}
            inside = scene.section(grant, node)
            again = {_subject(scene, c) for c in inside if last(c) in _READS}
            for call in inside:
                subject = _subject(scene, call)
                if last(call) in _SETS and subject and subject in before - again:
                    return [scene.fact("stale", call, key=subject, line=parent.lineno)]
        child = parent
    return []


def _read_calls(scene: Scene, test: ast.expr) -> list[ast.Call]:
    found = [n for n in ast.walk(test) if isinstance(n, ast.Call)]
    for name in ast.walk(test):
        if isinstance(name, ast.Name):
            value = scene.module.resolve(name)
            found += [value] if isinstance(value, ast.Call) else []
    return [c for c in found if last(c) in _READS]


def _subject(scene: Scene, call: ast.Call) -> str:
    """Receiver and key of a call, as text: the same for a read and a write of one thing."""
    if not isinstance(call.func, ast.Attribute) or not call.args:
        return ""
    return f"{ast.unparse(call.func.value)}[{ast.unparse(call.args[0])}]"


def _quorum(scene: Scene, grant: Fact, node: ast.expr) -> list[Fact]:
    if grant.get("library") != "redis commands" or grant.get("freed"):
        return []
    loop = loop_of(scene.module, node)
    if not isinstance(loop, ast.For) or not isinstance(node, ast.Call):
        return []
    target = ast.unparse(loop.target)
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    if receiver is None or ast.unparse(receiver) != target:
        return []
    function = scene.function(node)
    text = ast.unparse(function)
    judged = re.search(r"len\(|quorum|majority|//\s*2", text)
    if judged and not re.search(r"\.(?:delete|eval|unlink|evalsha)\(|release|unlock", text):
        return [scene.fact("quorum_left", node, library=grant.get("library"))]
    return []
