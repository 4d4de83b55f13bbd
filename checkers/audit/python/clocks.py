"""Which clocks a lease is judged by, and from when a grant counts.

Facts: clock: what ("shared": a client's wall clock in a value that others read; "sql": the same as
a parameter of a statement on a table of locks; "elapsed": a wall clock for a duration); validity
(the end of a lease counted from after the grant): word.

Traps: ``time.time`` for logs and names is harmless; only what is compared with a lease counts.
"""

from __future__ import annotations

import ast
import re

from checkers.audit.model import Fact
from checkers.audit.python.scene import Scene

_WALL = re.compile(
    r"\b(?:time\.time\(\)|datetime(?:\.datetime)?\.(?:now|utcnow)\(|timezone\.now\("
    r"|time\.time_ns\(\))"
)
_ANY = re.compile(r"\b(?:time\.(?:time|monotonic|perf_counter)(?:_ns)?\(\)|loop\.time\(\))")
_TABLE = re.compile(
    r"\b\w*(?:lock|lease|leader|mutex)\w*\b.*\b(?:expires?_?(?:at|on)?|expiry|expiration"
    r"|locked_until|lock_until|lease_until|valid_until|leased_until|heartbeat\w*|until)\b",
    re.I | re.S,
)
_UNTIL = re.compile(
    r"deadline|expires|expiry|valid|lease_(?:end|until)|until|good_till|safe_until", re.I
)
_LEASE = re.compile(r"ttl|lease|expire|valid", re.I)


def clock_facts(scene: Scene) -> list[Fact]:
    """All facts about clocks of one file."""
    found: list[Fact] = []
    for fact, node in scene.of("lock"):
        if isinstance(node, ast.Call) and len(node.args) > 1:
            value = ast.unparse(scene.module.resolve(node.args[1])) + ast.unparse(node.args[1])
            if _WALL.search(value) and fact.get("library") == "redis commands":
                word = ast.unparse(node.args[1])
                found.append(scene.fact("clock", node, what="shared", word=word))
    for call in scene.module.calls.get("execute", []):
        text = scene.module.text(call.args[0]) if call.args else None
        if text and _TABLE.search(text):
            given = " ".join(
                ast.unparse(part) + " " + ast.unparse(scene.module.resolve(part))
                for whole in call.args[1:]
                for part in (whole.elts if isinstance(whole, ast.Tuple | ast.List) else [whole])
            )
            if _WALL.search(given):
                found.append(scene.fact("clock", call, what="sql"))
    for grant, node in scene.grants():
        found += _after(scene, grant, node)
    return found


def _after(scene: Scene, grant: Fact, node: ast.expr) -> list[Fact]:
    function = scene.function(node)
    found: list[Fact] = []
    for part in ast.walk(function):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub):
            text = ast.unparse(part)
            if "time.time()" in text and _near_lease(scene, part):
                found.append(scene.fact("clock", part, what="elapsed", word=text))
        if not isinstance(part, ast.Assign) or part.lineno <= grant.place.end_line:
            continue
        last_line = int(grant.get("end") or 0)
        if grant.get("lease") != "ttl" or part.lineno > max(last_line, part.lineno - 1):
            continue
        target = ast.unparse(part.targets[0])
        value = part.value
        adds = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
        if not (adds and _UNTIL.search(target)):
            continue
        text = ast.unparse(value)
        if _ANY.search(text) and _LEASE.search(text + target):
            found.append(scene.fact("validity", part, word=target, library=grant.get("library")))
    return found[:1]


def _near_lease(scene: Scene, node: ast.AST) -> bool:
    """Whether a duration is set against a lease: in the same expression or assignment."""
    for parent in scene.module.above(node):
        near = isinstance(parent, ast.Compare | ast.BinOp | ast.Assign)
        if near and _LEASE.search(ast.unparse(parent)):
            return True
        if isinstance(parent, ast.stmt):
            return False
    return False
