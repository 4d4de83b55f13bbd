"""How an acquire is tried again: how often, after which pause, until when.

Facts: retry (a loop around an acquire): pause ("none", "constant", "grows", "random", "waits"),
step_ns, bounded, attempts, lease_ns, gives_up (an error or a no after the last attempt); limit (an
acquire with a time limit and a known work under the same lock): wait_ns, work_ns.

Traps: a loop that also holds the release is no retry, it is a service that works now and then.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from checkers.audit.model import Fact
from checkers.audit.python.flow import loop_of
from checkers.audit.python.locks import argument
from checkers.audit.python.scene import Scene, calls, last

_SLEEPS = ("time.sleep", "asyncio.sleep", "gevent.sleep", "trio.sleep", "anyio.sleep")
_BLOCKING = ("blpop", "brpop", "bzpopmin", "get_message", "listen", "select", "poll", "join")
_CHANCE = re.compile(r"\b(?:random|randint|uniform|randrange|expovariate|jitter|betavariate)\b")
_BOUND = re.compile(
    r"attempt|deadline|tries|retr|timeout|elapsed|until|count|remaining|budget|\bend|stop|left|max",
    re.I,
)
S = 1_000_000_000


def retry_facts(scene: Scene) -> list[Fact]:
    """Facts about all loops around an acquire, and time limits of waiting."""
    found: list[Fact] = []
    for grant, node in scene.grants():
        if grant.get("how") == "call" and grant.get("may_fail"):
            loop = loop_of(scene.module, node)
            if loop is not None and not (_holds_release(loop, grant) or _over_servers(loop, node)):
                found.append(_retry(scene, grant, node, loop))
        found += _limit(scene, grant, node)
    return found


def _holds_release(loop: ast.For | ast.While | ast.AsyncFor, grant: Fact) -> bool:
    line = int(grant.get("free_line") or 0)
    return loop.lineno <= line <= (loop.end_lineno or 0)


def _over_servers(loop: ast.For | ast.While | ast.AsyncFor, node: ast.expr) -> bool:
    """Whether a loop asks each of several servers once."""
    if isinstance(loop, ast.While) or not isinstance(node, ast.Call):
        return False
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node.func))


def _retry(
    scene: Scene, grant: Fact, node: ast.expr, loop: ast.For | ast.While | ast.AsyncFor
) -> Fact:
    values: dict[str, Any] = {
        "library": grant.get("library"),
        "lease_ns": grant.get("lease_ns"),
        "bounded": _bounded(scene, loop, node),
        "gives_up": _gives_up(scene, loop),
    }
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and last(loop.iter) == "range":
        attempts = scene.module.number(loop.iter.args[-1]) if loop.iter.args else None
        if attempts is not None and len(loop.iter.args) == 1:
            values["attempts"] = int(attempts)
    values |= _pause(scene, grant, node, loop)
    return scene.fact("retry", loop, **values)


def _pause(
    scene: Scene, grant: Fact, node: ast.expr, loop: ast.For | ast.While | ast.AsyncFor
) -> dict[str, Any]:
    module = scene.module
    sleeps = [
        c
        for c in calls(loop)
        if (scene.name(c) in _SLEEPS or last(c) in ("sleep", "wait")) and c is not node
    ]
    if not sleeps:
        if isinstance(node, ast.Call) and _waits(scene, node):
            return {"pause": "waits"}
        raw = grant.get("library") in ("redis commands", "advisory lock", "redis-py")
        blocks = any(last(c) in _BLOCKING for c in calls(loop))
        # Other libraries pause between tries of their own.
        return {"pause": "none" if raw and not blocks else "waits"}
    given = sleeps[0].args[0] if sleeps[0].args else argument(sleeps[0], ("timeout",), -1)
    if given is None:
        return {"pause": "waits"}
    text = ast.unparse(module.resolve(given)) + ast.unparse(given)
    inner = {n.id for n in ast.walk(given) if isinstance(n, ast.Name)}
    for own in ast.walk(loop):
        targets = own.targets if isinstance(own, ast.Assign) else []
        if isinstance(own, ast.AugAssign | ast.For):
            targets = [own.target]
        names = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        if names & inner:
            text += ast.unparse(own) if not isinstance(own, ast.For) else ""
            inner.add("+grows")
    if _CHANCE.search(text):
        return {"pause": "random"}
    if any(isinstance(n, ast.Call) for n in ast.walk(given)):
        return {"pause": "unknown"}  # somebody else computes it, maybe with chance
    if "+grows" in inner:
        return {"pause": "grows"}
    step_ns = module.duration_ns(given, S)
    return {"pause": "constant", **({} if step_ns is None else {"step_ns": step_ns})}


def _waits(scene: Scene, call: ast.Call) -> bool:
    """Whether the acquire itself waits for a while."""
    for keyword in call.keywords:
        if keyword.arg in ("blocking_timeout", "timeout", "acquire_timeout"):
            value = scene.module.number(keyword.value)
            return value is None or value > 0
        if keyword.arg == "blocking":
            value_node = scene.module.resolve(keyword.value)
            return not (isinstance(value_node, ast.Constant) and value_node.value is False)
    return False


def _bounded(scene: Scene, loop: ast.For | ast.While | ast.AsyncFor, node: ast.expr) -> bool:
    if not isinstance(loop, ast.While):
        text = ast.unparse(loop.iter)
        return not re.search(r"itertools\.count|count\(\)|cycle|iter\(int", text)
    test = scene.module.resolve(loop.test)
    if not (isinstance(test, ast.Constant) and test.value) and node not in set(ast.walk(loop.test)):
        return True  # a condition of its own: an event, a deadline, a counter
    for part in ast.walk(loop):
        if isinstance(part, ast.Compare):
            text = ast.unparse(part)
            if node not in set(ast.walk(part)) and (_BOUND.search(text) or "time." in text):
                return True
        if isinstance(part, ast.If) and (
            _BOUND.search(ast.unparse(part.test)) or _way_out(scene, part, node)
        ):
            return True
    return False


def _way_out(scene: Scene, branch: ast.If, node: ast.expr) -> bool:
    """Whether a branch that does not look at the answer leaves the loop."""
    names = {
        n.id
        for parent in scene.module.above(node)
        if isinstance(parent, ast.Assign)
        for n in ast.walk(parent.targets[0])
        if isinstance(n, ast.Name)
    }
    looks = any(
        n is node or (isinstance(n, ast.Name) and n.id in names) for n in ast.walk(branch.test)
    )
    leaves = ast.Return | ast.Raise | ast.Break
    return not looks and any(
        isinstance(n, leaves) for s in (*branch.body, *branch.orelse) for n in ast.walk(s)
    )


def _gives_up(scene: Scene, loop: ast.For | ast.While | ast.AsyncFor) -> bool:
    """Whether an error is raised once the attempts are used up."""
    for statement in loop.orelse:
        if any(isinstance(n, ast.Raise) for n in ast.walk(statement)):
            return True
    parent = scene.module.parent.get(loop)
    body = getattr(parent, "body", [])
    if loop not in body:
        return False
    after = body[body.index(loop) + 1 :]
    return bool(after) and isinstance(after[0], ast.Raise)


def _limit(scene: Scene, grant: Fact, node: ast.expr) -> list[Fact]:
    """A limit of waiting beside a work of known length under the same lock."""
    if not isinstance(node, ast.Call):
        return []
    sources = [node]
    if isinstance(node.func, ast.Attribute):
        maker = scene.module.resolve(node.func.value)
        sources += [maker] if isinstance(maker, ast.Call) else []
    for source in sources:
        given = argument(source, ("blocking_timeout", "acquire_timeout"), -1)
        wait_ns = None if given is None else scene.module.duration_ns(given, S)
        if wait_ns is None:
            continue
        works = [
            pause.get("pause_ns")
            for pause in scene.facts
            if pause.kind == "wait" and pause.get("grant_line") == grant.place.line
        ]
        if works:
            values = {"library": grant.get("library"), "wait_ns": wait_ns, "work_ns": sum(works)}
            return [scene.fact("limit", node, **values)]
    return []
