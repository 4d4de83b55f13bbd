"""What a Redis script does to a lock: takes, renews, releases, and whether it compares the owner.

    acts("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end")
    # [Act("release", guard=True, line=1)]

A script runs alone on the server: a comparison before the act is a guard, and a PEXPIRE behind a
SETNX is the same step.

Traps: a script that is put together at run time is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from checkers.audit.languages.grammars import MissingGrammar, parse
from checkers.audit.languages.tree import Node, Source
from checkers.audit.languages.values import Names
from checkers.audit.lockish import says_lock
from checkers.audit.model import Fact, Place

GUARD = "a script that compares the token and acts, in one step"
_READS = {"get", "hget", "hexists", "hgetall", "hmget"}
_PARTS_MAX = 200  # nodes that a comparison is followed through
_LINES_MAX = 60  # longer scripts do more than keep a lock
MS, S = 1_000_000, 1_000_000_000
_EXPIRES = {"expire": S, "pexpire": MS}


class Act(msgspec.Struct, frozen=True):
    """One thing that a script does to a lock."""

    kind: str  # grant, renew, release
    line: int
    end_line: int
    column: int
    key: str
    guard: bool = False
    creates: bool = False
    lease: str = ""  # "none", "set"; for a grant
    lease_ns: int | None = None
    constant: str = ""  # a literal where the token should be
    compared_constant: bool = False


@lru_cache(maxsize=512)
def acts(script: str) -> tuple[Act, ...] | None:
    """What a script does; None where it cannot be read."""
    if "redis." not in script or script.count("\n") > 400:
        return None
    try:
        source = parse("lua", "script", script)
    except MissingGrammar:
        return None
    return None if source.broken else tuple(_acts(source))


def _acts(source: Source) -> Iterator[Act]:
    names = Names({"script": source}, {})
    calls = [
        (c.args[0].name.lower(), c)
        for c in source.calls
        if c.name in ("call", "pcall") and c.args and c.args[0].kind == "string"
    ]
    taken = {
        c.args[1].words_of()
        for verb, c in calls
        if len(c.args) > 2 and (verb == "setnx" or (verb == "set" and _has(c, "NX")))
    }
    tested = {
        c.args[1].words_of() for verb, c in calls if verb in ("exists", "hexists") and c.args[1:]
    }
    for verb, call in calls:
        if len(call.args) < 2:
            continue
        key = call.args[1].words_of()
        if verb in ("del", "unlink"):
            yield _act("release", call, key, guard=_guarded(call, names))
        elif verb in _EXPIRES and key not in taken:
            if key in tested and not _guarded(call, names):
                continue  # counts and extends in one: more than a lock of one owner
            yield _act("renew", call, key, guard=_guarded(call, names))
        elif verb == "setnx" or (verb == "set" and _has(call, "NX")):
            yield _take(call, key, calls, names)
        elif verb == "set" and not _has(call, "XX"):
            if key in tested and _in_test(call):
                yield _take(call, key, calls, names)
            elif not _guarded(call, names):
                yield _act("renew", call, key, creates=True)
            else:
                yield _act("renew", call, key, guard=True)


def _act(kind: str, call: Node, key: str, **more: Any) -> Act:
    return Act(kind, call.line, call.end_line, call.column, key, **more)


def _has(call: Node, flag: str) -> bool:
    return any(a.kind == "string" and a.name.upper() == flag for a in call.args[3:])


def _take(call: Node, key: str, calls: list[tuple[str, Node]], names: Names) -> Act:
    lease_ns: int | None = None
    lease = "none"
    for at, arg in enumerate(call.args):
        if arg.kind == "string" and arg.name.upper() in ("PX", "EX") and at + 1 < len(call.args):
            lease = "set"
            unit = MS if arg.name.upper() == "PX" else S
            lease_ns = names.duration_ns(call.args[at + 1], unit)
        elif arg.kind == "string" and arg.name.upper() in ("PXAT", "EXAT", "KEEPTTL"):
            lease = "set"
    for verb, other in calls:
        if len(other.args) > 2 and other.args[1].words_of() == key and verb.endswith("expire"):
            lease, lease_ns = "set", names.duration_ns(other.args[2], _EXPIRES.get(verb, S))
    token = names.resolve(call.args[2]) if len(call.args) > 2 else None
    constant = ""
    if token is not None and token.kind in ("string", "number"):
        constant = token.words_of()
    return _act("grant", call, key, lease=lease, lease_ns=lease_ns, constant=constant)


def _compares(test: Node | None, names: Names) -> str:
    """ "==", "~=" or "": how a test compares what is stored with what the caller gave."""
    if test is None:
        return ""
    parts = list(test.walk())
    for node in parts:  # grows: what a local stands for may name other locals
        if node.kind == "name" and len(parts) < _PARTS_MAX:
            found = names.resolve(node)
            parts += found.walk() if found is not node else ()
    reads = any(n.kind == "call" and n.args and n.args[0].name.lower() in _READS for n in parts)
    given = any(n.kind == "name" and n.name == "ARGV" for n in parts)
    if not reads or not given:
        return ""
    signs = {n.name for n in test.walk() if n.kind == "binary"}
    return "~=" if "~=" in signs else "=="


def _guarded(call: Node, names: Names) -> bool:
    """Whether an act is done only for the owner."""
    child = call
    for parent in call.above():
        if parent.kind == "if" and _compares(parent.test, names) and child is not parent.test:
            return True
        if parent.kind == "block":
            for before in parent.args:
                if before.line >= child.line:
                    break
                if before.kind != "if" or not _compares(before.test, names):
                    continue
                if any(n.kind == "return" for n in before.walk()):
                    return True
        child = parent
    return False


def _in_test(call: Node) -> bool:
    return any(p.kind == "if" for p in call.above())


def script_facts(path: str, text: str) -> list[Fact] | None:
    """Facts of a .lua file; None where it cannot be parsed."""
    source = parse("lua", path, text)
    if source.broken:
        return None
    about = re.sub(r"^.*/", "", path).removesuffix(".lua")
    found = tuple(_acts(source))
    takes = {a.key for a in found if a.kind == "grant"}
    named = says_lock(about) and source.root.end_line <= _LINES_MAX
    if not named and not says_lock(text):
        return []
    facts: list[Fact] = []
    for act in found:
        if not named and act.key not in takes:
            continue
        facts += _facts(path, act)
    return facts


def _facts(path: str, act: Act) -> Iterator[Fact]:
    where = Place(path, act.line, act.end_line, act.column)
    values: dict[str, Any] = {"library": "redis commands", "family": "redis", "language": "lua"}
    if act.kind == "grant":
        values |= {"lease": "ttl", "renewing": False, "key": act.key}
        if act.lease == "none":
            values["lease_ns"] = None
        elif act.lease_ns is not None:
            values["lease_ns"] = act.lease_ns
        yield Fact("lock", where, values)
        token = {"token": "constant", "token_word": act.constant} if act.constant else {}
        yield Fact(
            "grant",
            where,
            {**values, **token, "how": "script", "use": "used", "may_fail": True, "freed": False},
        )
        return
    values |= {"guard": GUARD if act.guard else "", "use": "used", "fails_by": "false"}
    values |= {"creates": act.creates, "swallowed": False}
    yield Fact(act.kind, where, values)
