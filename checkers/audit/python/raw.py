"""Facts about locks built by hand in Python: Redis commands, advisory locks in SQL, writes.

    r.set(f"lock:{name}", token, nx=True, px=ttl_ms)   ->  lock and grant, library "redis commands"
    r.delete(f"lock:{name}")                           ->  release, guard ""
    cur.execute("SELECT pg_advisory_unlock(%s)", k)    ->  release, library "advisory lock"

Values beyond those of ``python.locks``: token ("fresh", "constant", "reusable", "shared" or
"unknown") with token_word; expire_line, where the lease is set by a second command; root (where the
connection was taken, a line) and pooled; write: fenced, what.

Traps: SET NX is also how people drop duplicates and count rates.  It is a lock only where a name
around it says so, or where the same function deletes the key again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from checkers.audit.knowledge import FRESH, MS, POOLS, REUSABLE, S
from checkers.audit.lockish import is_lock
from checkers.audit.model import Fact
from checkers.audit.python.flow import calls_in, in_finally, place, use_of, work_between
from checkers.audit.python.locks import argument, calls_in_node, every, returned
from checkers.audit.python.names import Module

_GUARDED = re.compile(r"redis\.call\s*\(\s*['\"]get['\"].*redis\.call", re.I | re.S)
_TAKES = re.compile(r"pg_(try_)?advisory_(xact_)?lock(_shared)?\s*\(\s*([^)]*)", re.I)
_FREES = re.compile(r"pg_advisory_unlock(_shared|_all)?\s*\(\s*([^)]*)", re.I)
_TOKEN = re.compile(
    r"fenc|token|epoch|version|generation|revision|xmin|etag|if_?match|term\b", re.I
)
COMMANDS, ADVISORY = "redis commands", "advisory lock"


def raw_facts(module: Module, grants: Iterable[Fact]) -> list[Fact]:
    """All facts about hand-made locks of one file, and about writes in all sections of it."""
    found: list[Fact] = []
    redis = _Redis(module)
    for name, calls in module.calls.items():
        for call in calls:
            if not isinstance(call.func, ast.Attribute):
                continue
            if name in ("set", "setnx") or (name == "add" and _is_cache(module, call)):
                found += redis.take(call)
            elif name == "execute":
                found += _sql(module, call)
    # What frees or renews is known by its key, so this comes after what takes.
    for name in (
        "set",
        "delete",
        "unlink",
        "expire",
        "pexpire",
        "eval",
        "evalsha",
        "register_script",
    ):
        for call in module.calls.get(name, []):
            if isinstance(call.func, ast.Attribute):
                found += redis.other(call, name)
    every_grant = [*grants, *(f for f in found if f.kind == "grant")]
    for grant in every_grant:
        found += _section(module, grant)
    return found


class _Redis:
    """Hand-made Redis locks of one file; remembers the keys that are locks."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.keys: dict[str, ast.Call] = {}

    def key(self, node: ast.expr) -> str:
        """The same text for two expressions that stand for the same key."""
        text = self.module.text(node)
        return f"={text}" if text is not None else ast.unparse(self.module.resolve(node))

    def take(self, call: ast.Call) -> list[Fact]:
        """Facts of SET NX or SETNX, if that is how a lock is taken here."""
        words = {k.arg: k.value for k in call.keywords if k.arg}
        plain = isinstance(call.func, ast.Attribute) and call.func.attr in ("setnx", "add")
        if not plain and not _is_true(words.get("nx")):
            return []
        if len(call.args) < 1:
            return []
        key = self.key(call.args[0])
        function = self.module.function_of(call) or self.module.tree
        around = calls_in(function, 0, 1 << 30)
        frees = self._frees(around, key)
        # A context manager frees in its other method; what is freed there is left by __exit__.
        owner = self.module.class_of(call)
        elsewhere = owner is not None and bool(self._frees(calls_in_node(owner), key))
        if not is_lock(self._words_about(call, key), freed=bool(frees) or elsewhere):
            return []
        token = call.args[1] if len(call.args) > 1 else None
        if isinstance(token, ast.Name) and returned(function, token.id):
            frees = []  # the caller gets the token; what is freed here is a way out before that
        self.keys[key] = call
        values: dict[str, Any] = {"library": COMMANDS, "family": "redis", "key": key}
        values |= {"lease": "ttl", "renewing": False, **self._lease(call, words, around, key)}
        values |= self._token(call, words)
        lock = Fact("lock", place(self.module, call), values, self.module.scope_name(call))
        free = frees[-1] if frees else None
        grant = {
            **values,
            "how": "call",
            "use": use_of(self.module, call),
            "may_fail": True,
            "end": free.lineno if free else getattr(function, "end_lineno", 1),
            "freed": bool(frees),
            "protected": any(in_finally(self.module, f) for f in frees),
            "work": free is not None and work_between(self.module, call, free),
            "free_line": free.lineno if free else 0,
        }
        return [lock, Fact("grant", lock.place, grant, lock.scope)]

    def _frees(self, calls: list[ast.Call], key: str) -> list[ast.Call]:
        return [
            c
            for c in calls
            if isinstance(c.func, ast.Attribute)
            and c.func.attr in ("delete", "unlink", "eval", "evalsha")
            and any(self.key(a) == key for a in c.args)
        ]

    def _words_about(self, call: ast.Call, key: str) -> list[str]:
        owner = self.module.class_of(call)
        function = self.module.function_of(call)
        words = [key, ast.unparse(call.args[0])]
        return [*words, getattr(owner, "name", ""), getattr(function, "name", "")]

    def _lease(
        self, call: ast.Call, words: dict[str, ast.expr], around: list[ast.Call], key: str
    ) -> dict[str, Any]:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add":
            given = argument(call, ("timeout",), 2)
            if given is None:
                return {}  # the default of the cache's settings
            words = {"ex": given}
        for word, unit in (("ex", S), ("px", MS)):
            given = words.get(word)
            if given is None or (isinstance(given, ast.Constant) and given.value is None):
                continue
            lease_ns = self.module.duration_ns(given, unit)
            known = {} if lease_ns is None else {"lease_ns": lease_ns}
            return {"lease_word": ast.unparse(given), "lease_unit_ns": unit, **known}
        if {"exat", "pxat"} & set(words) or None in {k.arg for k in call.keywords}:
            return {}
        for other in around:
            name = other.func.attr if isinstance(other.func, ast.Attribute) else ""
            if name not in ("expire", "pexpire", "expireat") or not other.args:
                continue
            if self.key(other.args[0]) == key:
                return {"expire_line": other.lineno, "expire_end": other.end_lineno}
        return {"lease_ns": None}

    def _token(self, call: ast.Call, words: dict[str, ast.expr]) -> dict[str, Any]:
        value = call.args[1] if len(call.args) > 1 else words.get("value")
        if value is None:
            return {"token": "unknown"}
        return {"token": token_of(self.module, value), "token_word": ast.unparse(value)}

    def other(self, call: ast.Call, name: str) -> list[Fact]:
        """Facts of commands that free or renew a lock taken elsewhere in the file."""
        kind, guard = ("release" if name in ("delete", "unlink") else "renew"), ""
        if name == "set" and ({k.arg for k in call.keywords} & {"nx", None}):
            return []
        if name in ("eval", "evalsha", "register_script"):
            script = self.module.text(call.args[0]) if call.args else None
            if script is None or not _GUARDED.search(script):
                return []
            lower = script.lower()
            kind = "release" if re.search(r"['\"](del|unlink)['\"]", lower) else "renew"
            guard = "a script that compares the token and acts, in one step"
            if not self.keys and not re.search("lock", self.module.scope_name(call), re.I):
                return []
        elif not call.args or self.key(call.args[0]) not in self.keys:
            return []
        if not guard and kind == "renew" and self._is_lease(call):
            return []
        values = {
            "library": COMMANDS,
            "family": "redis",
            "use": use_of(self.module, call),
            "guard": guard,
            "in_finally": in_finally(self.module, call),
            "fails_by": "false",
            "swallowed": False,
            "compared": self._compared(call),
            "creates": name == "set" and not any(k.arg == "xx" for k in call.keywords),
            **(every(self.module, call) if kind == "renew" else {}),
        }
        where = self.module.scope_name(call)
        return [Fact(kind, place(self.module, call), values, where)]

    def _is_lease(self, call: ast.Call) -> bool:
        """Whether an EXPIRE is the second half of taking, not a renewal."""
        take = self.keys[self.key(call.args[0])]
        return self.module.function_of(take) is self.module.function_of(call) and not every(
            self.module, call
        )

    def _compared(self, call: ast.Call) -> bool:
        """Whether the client reads and compares first, which is two steps and not one."""
        return any(
            isinstance(parent, ast.If)
            and any(
                isinstance(c.func, ast.Attribute) and c.func.attr == "get"
                for c in calls_in_node(parent.test)
            )
            for parent in self.module.above(call)
        )


def _is_cache(module: Module, call: ast.Call) -> bool:
    """Whether a call of ``add`` is Django's: it sets a key that does not exist yet."""
    if not isinstance(call.func, ast.Attribute) or len(call.args) < 2:
        return False
    return module.dotted(module.resolve(call.func.value)).startswith("django.core.cache.cache")


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def token_of(module: Module, value: ast.expr) -> str:
    """What kind of owner's token an expression stands for."""
    found = module.resolve(value)
    home = module.home(found)
    if isinstance(found, ast.Constant):
        return "unknown" if found.value is None else "constant"
    names = [home.dotted(c.func) for c in calls_in_node(found)]
    if isinstance(found, ast.JoinedStr | ast.BinOp):
        parts = [p.value for p in getattr(found, "values", []) if hasattr(p, "value")]
        parts += [found.left, found.right] if isinstance(found, ast.BinOp) else []
        kinds = {token_of(home, p) for p in parts if isinstance(p, ast.expr)}
        for kind in ("fresh", "shared", "unknown", "reusable"):
            if kind in kinds:
                return kind
        return "constant"
    if any(name.startswith(FRESH) for name in names):
        at_top = home.function_of(found) is None and found is not value
        return "shared" if at_top else "fresh"
    if any(name.startswith(REUSABLE) for name in names):
        return "reusable"
    whole = home.dotted(found)
    return "reusable" if whole.startswith(REUSABLE) else "unknown"


def _sql(module: Module, call: ast.Call) -> list[Fact]:
    """Facts of a statement that takes or frees an advisory lock."""
    text = module.text(call.args[0]) if call.args else None
    if text is None:
        return []
    takes, frees = _TAKES.search(text), _FREES.search(text)
    if not takes and not frees:
        return []
    values: dict[str, Any] = {
        "library": ADVISORY,
        "family": "postgres",
        "use": _fetched(module, call),
        **_root(module, call),
    }
    where, scope = place(module, call), module.scope_name(call)
    if frees:
        values |= {"guard": "the session that took it", "in_finally": in_finally(module, call)}
        values["boolean"] = not (frees[1] or "").lower().startswith("_all")  # that gives void
        return [Fact("release", where, values, scope)]
    assert takes is not None
    transaction = bool(takes[2])
    values |= {"lease": "transaction" if transaction else "session", "try": bool(takes[1])}
    function = module.function_of(call) or module.tree
    others = [
        c
        for c in calls_in(function, call.lineno, 1 << 30)
        if c is not call and c.args and _FREES.search(module.text(c.args[0]) or "")
    ]
    free = others[-1] if others else None
    values |= {
        "how": "call",
        "may_fail": bool(takes[1]),
        "with_raises": True,
        "renewing": False,
        "freed": free is not None,
        "protected": free is not None and in_finally(module, free),
        "work": free is not None and work_between(module, call, free),
        "end": free.lineno if free else getattr(function, "end_lineno", 1),
        "free_line": free.lineno if free else 0,
    }
    lock = Fact("lock", where, values, scope)
    return [lock, Fact("grant", where, values, scope)]


def _fetched(module: Module, call: ast.Call) -> str:
    """use_of, where the answer of a cursor is read by a later fetch."""
    used = use_of(module, call)
    if used != "dropped" or not isinstance(call.func, ast.Attribute):
        return used
    receiver = ast.unparse(call.func.value)
    function = module.function_of(call) or module.tree
    last = getattr(module.parent.get(module.parent[call]), "end_lineno", None) or call.lineno
    for other in calls_in(function, call.lineno, max(last, call.lineno + 4)):
        if not isinstance(other.func, ast.Attribute):
            continue
        name = other.func.attr
        if name.startswith("fetch") and ast.unparse(other.func.value) == receiver:
            return use_of(module, other)
        if name == "execute" and other is not call and other.lineno > call.lineno:
            break
    return "dropped"


def _root(module: Module, call: ast.Call) -> dict[str, Any]:
    """Which connection a statement uses: {"root": line, "pooled": bool}, or nothing."""
    node = call.func.value if isinstance(call.func, ast.Attribute) else None
    for _ in range(4):
        if node is None:
            return {}
        found = module.resolve(node)
        if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Attribute):
            return {}
        if found.func.attr in ("connection", "getconn", "acquire", "connect", "begin"):
            owner = module.resolve(found.func.value)
            home = module.home(owner)
            name = home.dotted(owner.func) if isinstance(owner, ast.Call) else ""
            word = ast.unparse(found.func.value)
            pooled = name.startswith(POOLS) or bool(re.search(r"pool|engine", word, re.I))
            return {"root": found.lineno, "pooled": pooled}
        node = found.func.value
    return {}


def _section(module: Module, grant: Fact) -> list[Fact]:
    """Writes and pauses between a grant and its release."""
    function: Any = module.tree
    for node in module.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.lineno <= grant.place.line <= (node.end_lineno or 0):
            function = node  # the last one that fits is the innermost
    found = []
    for call in calls_in(function, grant.place.end_line + 1, int(grant.get("end") or 0)):
        what = _write(module, call)
        where = place(module, call)
        common = {"grant_line": grant.place.line, "library": grant.get("library")}
        if what:
            fenced = bool(_TOKEN.search(ast.unparse(call)) or _TOKEN.search(what))
            values = {
                **common, "what": what, "fenced": fenced,
                "lease": grant.get("lease"), "freed": grant.get("freed"),
            }  # fmt: skip
            found.append(Fact("write", where, values, grant.scope))
        elif module.dotted(call.func) in ("time.sleep", "asyncio.sleep") and call.args:
            pause_ns = module.duration_ns(call.args[0], S)
            if pause_ns is not None:
                values = {**common, "pause_ns": pause_ns, "lease_ns": grant.get("lease_ns")}
                values |= {"renewing": grant.get("renewing"), "freed": grant.get("freed")}
                found.append(Fact("wait", where, values, grant.scope))
    return found


def _write(module: Module, call: ast.Call) -> str:
    """What a call writes outside of this process, or ""."""
    if not isinstance(call.func, ast.Attribute):
        return ""
    if call.func.attr == "execute" and call.args:
        text = module.text(call.args[0]) or ""
        return text if re.match(r"\s*update\s", text, re.I) else ""
    if call.func.attr == "put_object":
        return "put_object"
    if module.dotted(call.func) in ("requests.put", "requests.post", "httpx.put", "httpx.post"):
        return module.dotted(call.func)
    return ""


__all__ = ["ADVISORY", "COMMANDS", "argument", "raw_facts", "token_of"]
