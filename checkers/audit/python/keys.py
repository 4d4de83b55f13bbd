"""What the key of a lock is made of, and in which order keys are taken.

Facts: key: made ("hash", "narrow"), word; data_key (a lock's key that is also written as data);
nested (one lock taken under another): outer, inner; unsorted (locks taken in the order of a
parameter): word; compare (an answer of the server, which is bytes, compared with text); counter (a
counter that hands out tokens); replica_read (a client that reads from replicas).

Traps: ``hash`` of a class of one's own may be stable; ``hash`` of text never is, across processes.
"""

from __future__ import annotations

import ast
import re

from checkers.audit.model import Fact
from checkers.audit.python.flow import loop_of
from checkers.audit.python.locks import argument, maker_of
from checkers.audit.python.scene import Scene, calls, last

_DATA = {
    "hset", "hgetall", "hget", "lpush", "rpush", "lrange", "sadd", "smembers", "zadd", "incr",
    "incrby", "setex", "append", "hincrby", "rpop", "lpop",
}  # fmt: skip
_NARROW = {"zlib.crc32", "zlib.adler32", "binascii.crc32", "crc32"}
_ADVISORY = re.compile(r"pg_(?:try_)?advisory_(?:xact_)?lock", re.I)


def key_facts(scene: Scene) -> list[Fact]:
    """All facts about keys of one file."""
    found: list[Fact] = []
    taken: dict[str, Fact] = {}
    for fact, node in scene.of("lock"):
        if not isinstance(node, ast.Call):
            continue
        key = _key(scene, fact, node)
        if key is not None:
            found += _made(scene, fact, node, key)
        if fact.get("library") == "redis-py" and isinstance(fact.get("key"), str):
            taken.setdefault(fact.get("key"), fact)
    found += _data(scene, taken)
    found += _nested(scene)
    found += _unsorted(scene)
    found += _compared(scene)
    for name in ("incr", "incrby"):
        for call in scene.module.calls.get(name, []):
            text = scene.module.text(call.args[0]) if call.args else None
            if text and re.search(r"fenc|token|epoch", text, re.I):
                found.append(scene.fact("counter", call, key=text))
    for group in scene.module.calls.values():
        for call in group:
            for keyword in call.keywords:
                on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
                if on and keyword.arg in ("read_from_replicas", "readonly_mode"):
                    found.append(scene.fact("replica_read", call, word=keyword.arg))
    return found


def _key(scene: Scene, fact: Fact, call: ast.Call) -> ast.expr | None:
    if fact.get("library") == "advisory lock":
        if len(call.args) < 2:
            return call.args[0] if call.args else None
        given = scene.module.resolve(call.args[1])
        if isinstance(given, ast.Tuple | ast.List) and given.elts:
            return given.elts[-1]
        return given
    return argument(call, ("name", "key", "resource", "path"), 0)


def _made(scene: Scene, fact: Fact, node: ast.Call, key: ast.expr) -> list[Fact]:
    whole = scene.module.resolve(key)
    library = fact.get("library")
    advisory = library == "advisory lock"
    for part in (*ast.walk(key), *ast.walk(whole)):
        if isinstance(part, ast.Call):
            name = scene.module.dotted(part.func)
            if name in ("hash", "id"):
                word = ast.unparse(part)
                return [scene.fact("key", node, made="hash", word=word, library=library)]
            if name in _NARROW and advisory:
                word = ast.unparse(part)
                return [scene.fact("key", node, made="narrow", word=word, library=library)]
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod | ast.BitAnd) and advisory:
            size = scene.module.number(part.right)
            if size is not None and size <= 0xFFFF:
                word = ast.unparse(part)
                return [scene.fact("key", node, made="narrow", word=word, library=library)]
    return []


def _data(scene: Scene, taken: dict[str, Fact]) -> list[Fact]:
    found = []
    for name in sorted({*_DATA, "set"}):
        for call in scene.module.calls.get(name, []):
            words = {k.arg for k in call.keywords}
            if not call.args or words & {"nx", "xx"}:
                continue
            key = scene.module.text(call.args[0])
            if key is not None and key in taken and not key.startswith("{}"):
                lock = taken[key]
                values = {"key": key, "library": lock.get("library"), "line": lock.place.line}
                found.append(scene.fact("data_key", call, command=name, **values))
    return found[:1]


def _nested(scene: Scene) -> list[Fact]:
    """Pairs of known keys, one taken while the other is held."""
    keyed = []
    for grant, node in scene.grants():
        maker, _ = maker_of(scene.module, node)
        if maker is None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            maker, _ = maker_of(scene.module, node.func.value)
        key = argument(maker, ("name", "key", "path"), 0) if maker is not None else None
        text = None if key is None else scene.module.text(key)
        if text:
            keyed.append((grant, node, text))
    found = []
    for outer, outer_node, first in keyed:
        for inner, node, second in keyed:
            if inner is outer or first == second:
                continue
            same = scene.function(node) is scene.function(outer_node)
            below = outer.place <= inner.place and inner.place.line <= int(outer.get("end") or 0)
            if same and below and outer.get("freed"):
                values = {"outer": first, "inner": second, "library": inner.get("library")}
                found.append(scene.fact("nested", node, **values))
    return found


def _unsorted(scene: Scene) -> list[Fact]:
    """Locks that are taken one after the other in the order in which somebody names them."""
    found = []
    for grant, node in scene.grants():
        loop = loop_of(scene.module, node)
        if not isinstance(loop, ast.For) or grant.get("how") != "call":
            continue
        if loop.lineno <= int(grant.get("free_line") or 0) <= (loop.end_lineno or 0):
            continue  # one at a time
        function = scene.module.function_of(loop)
        if function is None or not isinstance(loop.iter, ast.Name):
            continue
        names = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
        keeps = any(last(c) in ("append", "enter_context", "push") for c in calls(loop))
        assigned = any(
            isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == loop.iter.id
            for n in ast.walk(function)
        )
        sorts = any(
            last(c) == "sort" and ast.unparse(c.func).startswith(f"{loop.iter.id}.")
            for c in calls(function)
        )
        if loop.iter.id in names and keeps and not assigned and not sorts:
            values = {"word": loop.iter.id, "library": grant.get("library")}
            found.append(scene.fact("unsorted", loop, **values))
    return found


def _compared(scene: Scene) -> list[Fact]:
    found = []
    client = any(w.split(".")[0] in ("redis", "valkey") for w in scene.module.imports.values())
    for node in scene.module.nodes if client else ():
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        if not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            continue
        sides = (node.left, node.comparators[0])
        for answer, other in (sides, sides[::-1]):
            if _bytes(scene, answer) and _text(scene, other):
                word = ast.unparse(node)
                found.append(scene.fact("compare", node, word=word))
    return found


def _bytes(scene: Scene, node: ast.expr) -> bool:
    """Whether an expression is the answer of a Redis client that does not decode."""
    call = scene.module.resolve(node)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr not in ("get", "getset", "hget"):
        return False
    maker = scene.module.resolve(call.func.value)
    if not isinstance(maker, ast.Call):
        return False
    home = scene.module.home(maker)
    if home.dotted(maker.func) not in (
        "redis.Redis", "redis.StrictRedis", "redis.from_url", "redis.Redis.from_url",
        "redis.asyncio.Redis", "redis.asyncio.from_url", "valkey.Valkey",
    ):  # fmt: skip
        return False
    words = {k.arg: k.value for k in maker.keywords}
    if None in words or "connection_pool" in words:
        return False
    decode = words.get("decode_responses")
    return decode is None or (isinstance(decode, ast.Constant) and decode.value is False)


def _text(scene: Scene, node: ast.expr) -> bool:
    found = scene.module.resolve(node)
    if isinstance(found, ast.Constant):
        return isinstance(found.value, str)
    if isinstance(found, ast.JoinedStr):
        return True
    if isinstance(found, ast.Attribute) and found.attr == "hex":
        return True
    return isinstance(found, ast.Call) and scene.module.dotted(found.func) in (
        "str", "secrets.token_hex", "secrets.token_urlsafe",
    )  # fmt: skip
