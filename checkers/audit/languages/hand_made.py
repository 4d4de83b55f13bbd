"""Facts about locks built by hand in JavaScript, Go, Java and Ruby: Redis commands, advisory locks.

    client.set(key, token, "NX", "PX", 30000)          lock and grant, library "redis commands"
    rdb.Del(ctx, key)                                   release, guard ""
    db.query("SELECT pg_advisory_unlock($1)", [k])      release, library "advisory lock"

The facts and their values are those of ``python.raw``, with ``language`` besides.

Traps: SET NX is a lock only where a name around it says so, or where the same function or class
deletes the key again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from checkers.audit.knowledge_code import FRESH_CODE, REUSABLE_CODE
from checkers.audit.languages.commands import Command, command
from checkers.audit.languages.flow import (
    function_of,
    in_finally,
    scope_name,
    use_of,
    use_of_name,
)
from checkers.audit.languages.scripts import GUARD, acts
from checkers.audit.languages.sections import every, inside, place, section
from checkers.audit.languages.sql import planned
from checkers.audit.languages.tree import Node, Source
from checkers.audit.languages.values import Names, class_of, scope_of
from checkers.audit.lockish import is_lock, says_lock
from checkers.audit.model import Fact

COMMANDS, ADVISORY = "redis commands", "advisory lock"
_TAKES = re.compile(r"pg_(try_)?advisory_(xact_)?lock(_shared)?\s*\(", re.I)
_FREES = re.compile(r"pg_advisory_unlock(_shared|_all)?\s*\(", re.I)
_DEFINES = re.compile(r"\bcreate\s+(or\s+replace\s+)?function\b", re.I)
_EXPIRES = re.compile(r"expire|extend|ttl|refresh|renew|timeout", re.I)
_GIVES_BACK = re.compile(r"lock|release|free|renew|extend|refresh|heartbeat|keep|mutex", re.I)
_RUNS = {
    "query", "execute", "exec", "Exec", "ExecContext", "QueryRow", "QueryRowContext", "Query",
    "select_value", "exec_query", "queryForObject", "executeQuery", "prepareStatement", "raw",
    "one", "oneOrNone", "any", "get_advisory_lock", "release_advisory_lock", "select_one",
    "executeUpdate", "update", "exec_params", "queryForMap", "Get", "GetContext", "none",
}  # fmt: skip


class HandMade:
    """Hand-made locks of one file; remembers the keys that are locks."""

    def __init__(self, source: Source, names: Names) -> None:
        self.source, self.names = source, names
        self.commands: list[tuple[Node, Command]] = []
        for call in source.calls:
            found = command(call, names)
            if found is not None:
                self.commands.append((call, found))
        self.keys: dict[str, Node] = {}

    def facts(self) -> Iterator[Fact]:
        """All facts about hand-made locks of this file, and what is done under them."""
        for call, sent in self.commands:
            if sent.verb == "set" and sent.nx:
                yield from self._take(call, sent)
        for call, sent in self.commands:
            yield from self._other(call, sent)
        for call in self.source.calls:
            if call.name in _RUNS:
                yield from self._sql(call)

    def _common(self, family: str, library: str) -> dict[str, Any]:
        return {"library": library, "family": family, "language": self.source.language}

    def _key(self, node: Node | None) -> str:
        return "" if node is None else self.names.key(node)

    def _frees(self, key: str, within: Node) -> list[Node]:
        """Calls that free this key."""
        found = []
        for call, sent in self.commands:
            keys = {"del": (sent.key,), "eval": tuple(sent.values)}
            sends: tuple[Node | None, ...] = keys.get(sent.verb, ())
            if call.within(within) and any(self._key(node) == key for node in sends):
                found.append(call)
        return found

    def _take(self, call: Node, sent: Command) -> Iterator[Fact]:
        assert sent.key is not None
        key = self._key(sent.key)
        function = function_of(call) or self.source.root
        own, owner = self._frees(key, function), class_of(call)
        elsewhere = owner is not None and bool(self._frees(key, owner))
        if not is_lock(self._words_about(call, sent, key), freed=bool(own) or elsewhere):
            return
        self.keys[key] = call
        values: dict[str, Any] = {**self._common("redis", COMMANDS), "key": key}
        values |= {"lease": "ttl", "renewing": False, **self._lease(sent, function, key)}
        if sent.value is not None:
            values |= {"token": self.token_of(sent.value), "token_word": _word(sent.value)}
        where, scope = place(self.names, call), scope_name(call)
        yield Fact("lock", where, values, scope)
        ends = section(self.names, call, own)
        grant = {**values, "how": "call", "may_fail": True, **ends}
        grant["use"] = use_of(call, by_error=sent.by_error)
        if sent.by_error:
            grant["use"] = _better(grant["use"], use_of(call, 1))
        if call.args and call.args[-1].kind == "function":
            grant["use"] = "used"  # a callback gets the answer
        fact = Fact("grant", where, grant, scope)
        yield fact
        yield from inside(self.names, fact, call)

    def _words_about(self, call: Node, sent: Command, key: str) -> list[str]:
        assert sent.key is not None
        owner, function = class_of(call), function_of(call)
        words = [key, sent.key.words_of()]
        return [*words, owner.name if owner else "", function.name if function else ""]

    def _lease(self, sent: Command, function: Node, key: str) -> dict[str, Any]:
        if sent.lease is not None:
            unit = sent.lease_unit_ns
            lease_ns = self.names.duration_ns(sent.lease, unit)
            if lease_ns == 0:
                return {"lease_ns": None}  # go-redis: no expiry
            known = {} if lease_ns is None else {"lease_ns": lease_ns}
            return {"lease_word": _word(sent.lease), "lease_unit_ns": unit, **known}
        if sent.open_ended:
            return {}
        for call, other in self.commands:
            if other.verb == "expire" and call.within(function) and self._key(other.key) == key:
                return {"expire_line": call.line, "expire_end": call.end_line}
        if any(n.kind in ("call", "name") and _EXPIRES.search(n.name) for n in function.walk()):
            return {}  # by a helper
        return {"lease_ns": None}

    def token_of(self, value: Node) -> str:
        """What kind of owner's token an expression stands for."""
        found = self.names.resolve(value)
        if found.kind in ("number", "const"):
            return "unknown" if found.kind == "const" and found.value is None else "constant"
        if found.kind == "string" and not found.args and "{}" not in found.name:
            return "constant"
        spelled = [n.dotted() for n in found.walk() if n.kind in ("call", "field", "name")]
        if any(_starts(name, FRESH_CODE) for name in spelled):
            top = scope_of(found)
            at_top = top.kind != "function" and found is not value
            if at_top and top.kind == "class":
                around = next((p for p in found.above() if p.kind == "assign"), None)
                if around is None or around.name != "static":
                    return "fresh"  # a field of each object
            return "shared" if at_top else "fresh"
        parts = found.args if found.kind in ("string", "binary") else []
        kinds = {self.token_of(part) for part in parts}
        for kind in ("fresh", "shared", "unknown", "reusable"):
            if kind in kinds:
                return kind
        if parts:
            return "constant"
        if any(_starts(name, REUSABLE_CODE) for name in spelled):
            return "reusable"
        if found.kind == "call" and found.args and found.name in ("Sprintf", "format"):
            kinds = {self.token_of(part) for part in found.args[1:]}
            return kinds.pop() if len(kinds) == 1 else "unknown"
        return "unknown"

    def _other(self, call: Node, sent: Command) -> Iterator[Fact]:
        """Facts of a command that frees or renews a lock taken elsewhere in the file."""
        if sent.verb == "eval":
            yield from self._script(call, sent)
            return
        if sent.nx or self._key(sent.key) not in self.keys:
            return
        kind = "release" if sent.verb == "del" else "renew"
        take = self.keys[self._key(sent.key)]
        if not self._same_key(call, sent, take):
            return
        repeated = every(self.names, call)
        if kind == "renew" and function_of(take) is function_of(call) and not repeated:
            return  # the second half of taking, or a value that is filled in
        yield self._fact(call, kind, "", sent, repeated)

    def _same_key(self, call: Node, sent: Command, take: Node) -> bool:
        """Whether two uses of a name mean one key: a parameter of two functions may be two keys."""
        function = function_of(call)
        if function is None or function is function_of(take) or sent.key is None:
            return True
        if sent.key.kind != "name" or not any(p.name == sent.key.name for p in function.params):
            return True
        return bool(_GIVES_BACK.search(function.name))

    def _fact(
        self, call: Node, kind: str, guard: str, sent: Command, repeated: dict[str, Any]
    ) -> Fact:
        values = {
            **self._common("redis", COMMANDS),
            "use": use_of(call),
            "guard": guard,
            "in_finally": in_finally(call),
            "fails_by": "false",
            "swallowed": False,
            "compared": self._compared(call),
            "creates": sent.verb == "set" and not sent.xx,
            **(repeated if kind == "renew" else {}),
        }
        return Fact(kind, place(self.names, call), values, scope_name(call))

    def _script(self, call: Node, sent: Command) -> Iterator[Fact]:
        text = self.names.text(sent.script) if sent.script is not None else None
        found = acts(text) if text else None
        known = any(self._key(v) in self.keys for v in sent.values)
        if not found or not (known or (self.keys and says_lock(scope_name(call)))):
            return
        kinds = {a.kind for a in found if a.kind != "grant"}
        if len(kinds) != 1:
            return  # takes, or does several things
        kind = kinds.pop()
        guarded = all(a.guard for a in found)
        if not guarded and not known:
            return
        yield self._fact(call, kind, GUARD if guarded else "", sent, every(self.names, call))

    def _compared(self, call: Node) -> bool:
        """Whether the client reads and compares first, which is two steps and not one."""
        for parent in call.above():
            if parent.kind == "function":
                return False
            if parent.kind != "if" or parent.test is None or call.within(parent.test):
                continue
            parts = list(parent.test.walk())
            for node in list(parts):
                if node.kind == "name":
                    parts += list(self.names.resolve(node).walk())
            if any(n.kind == "call" and n.name.lower() == "get" for n in parts):
                return True
        return False

    def _sql(self, call: Node) -> Iterator[Fact]:
        """Facts of a statement that takes or frees an advisory lock."""
        if call.name in ("get_advisory_lock", "release_advisory_lock"):
            if call.on is None:
                return  # a method of the file's own, not the one of a Rails connection
            text = "pg_try_advisory_lock(" if call.name[0] == "g" else "pg_advisory_unlock("
        else:
            text = next((t for a in call.args[:2] if (t := self.names.text(a))), "")
        takes, frees = _TAKES.search(text), _FREES.search(text)
        if (not takes and not frees) or _DEFINES.search(text):
            return
        values: dict[str, Any] = {**self._common("postgres", ADVISORY), "use": _answer(call)}
        where, scope = place(self.names, call), scope_name(call)
        if frees:
            values |= {"guard": "the session that took it", "in_finally": in_finally(call)}
            values["boolean"] = not (frees[1] or "").lower().startswith("_all")
            yield Fact("release", where, values, scope)
            return
        assert takes is not None
        values |= {"lease": "transaction" if takes[2] else "session", "try": bool(takes[1])}
        values |= {"how": "call", "may_fail": bool(takes[1]), "with_raises": True}
        values |= {"renewing": False, **section(self.names, call, self._unlocks())}
        why = planned(text)
        values |= {"planned": why} if why else {}
        yield Fact("lock", where, values, scope)
        yield Fact("grant", where, values, scope)

    def _unlocks(self) -> list[Node]:
        return [
            c
            for c in self.source.calls
            if (c.name == "release_advisory_lock" and c.on is not None)
            or (
                c.name in _RUNS and any(_FREES.search(self.names.text(a) or "") for a in c.args[:2])
            )
        ]


def _answer(call: Node) -> str:
    """use_of; a row of Go is read by the Scan behind it."""
    parent = call.parent
    if parent is not None and parent.kind == "call" and parent.on is call:
        if parent.name == "Scan":
            given = parent.args[0] if parent.args else None
            target = given.args[0] if given is not None and given.kind == "unary" else None
            function = function_of(call)
            if target is not None and function is not None:
                return use_of_name(target, function)
        return "used"
    return use_of(call)


def _better(one: str, other: str) -> str:
    order = ("checked", "used", "unchecked", "dropped")
    return min(one, other, key=order.index)


def _word(node: Node) -> str:
    return node.words_of() or "an expression"


def _starts(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether a dotted name or one of its tails begins with a known maker."""
    return any(name.startswith(p) or f".{p}" in name for p in prefixes)
