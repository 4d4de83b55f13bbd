"""Facts about locks of known libraries in JavaScript, Go, Java and Ruby.

    await redlock.acquire(["a"], 5000)      lock and grant, library "node-redlock"
    defer mutex.Unlock()                    release, in_finally
    @SchedulerLock(name = "a", ...)         lock and grant of the method below it

The facts and their values are those of ``python.locks``, with ``language`` besides.  ``around`` is
the node of a section where that is not the function of its grant.

Traps: a file that does not import a library has no facts about it, but for names that only one
library has (``with_advisory_lock``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from checkers.audit.knowledge_code import CODE_LIBRARIES, MS, TYPED, CodeLibrary, Method, S
from checkers.audit.languages.flow import (
    decides_nothing,
    function_of,
    handlers_of,
    in_finally,
    only_notes,
    scope_name,
    silenced,
    use_of,
    use_of_name,
)
from checkers.audit.languages.sections import every, inside, place, returned, section
from checkers.audit.languages.tree import Node, Source
from checkers.audit.languages.values import Names
from checkers.audit.model import Fact

_BLOCKS = {m.name for m in CODE_LIBRARIES["with_advisory_lock"].acquires}
_TEXT_NS = {"": MS, "ns": 1, "us": 1_000, "ms": MS, "s": S, "m": 60 * S, "h": 3600 * S,
            "d": 86400 * S}  # fmt: skip


class LibraryLocks:
    """The locks of one file; ``facts`` are in the order in which they were found."""

    def __init__(self, source: Source, names: Names) -> None:
        self.source, self.names = source, names
        self.rows = [
            row
            for row in CODE_LIBRARIES.values()
            if row.language == source.language
            and row.acquires
            and (
                not row.imports
                or source.imported(row.imports)
                or (source.language == "ruby" and bool(row.guess))
            )
        ]

    def facts(self) -> Iterator[Fact]:
        """All facts about locks of libraries in this file, and what is done under them."""
        methods = {
            m.name for r in self.rows for m in (*r.acquires, *r.renews, *r.releases)
        }  # most calls of a file are none of these
        for call in self.source.calls:
            if call.name in methods:
                yield from self._call(call)
            elif call.name == "@SchedulerLock" and self.source.imported(
                CODE_LIBRARIES["ShedLock"].imports
            ):
                yield from self._scheduled(call)

    def _call(self, call: Node) -> Iterator[Fact]:
        for row in self.rows:
            for method in row.acquires:
                if _fits(call, method) and self._is_acquire(call, row):
                    yield from self._grant(call, row, method)
                    return
            for method in row.renews:
                if _fits(call, method) and self._is_held(call, row):
                    yield self._renew(call, row, method)
                    return
            for method in row.releases:
                if _fits(call, method) and self._is_held(call, row):
                    yield self._release(call, row, method)
                    return

    def _maker(self, node: Node | None, row: CodeLibrary) -> Node | None:
        """The call that made what an expression stands for, if it is one of this library's."""
        if node is None:
            return None
        found = self.names.resolve(node)
        if found.kind != "call":
            return None
        spelled = found.dotted().removesuffix("()").replace("().", ".")
        fits = found.name in row.makers or spelled in row.makers
        if not fits or self._mistyped(node, row):
            return None
        if found.on is not None and found.on.kind == "name" and self.source.language == "go":
            package = self.names.home(found).imports.get(found.on.name, "")
            if package and not package.startswith(row.imports):
                return None
        return found

    def _is_acquire(self, call: Node, row: CodeLibrary) -> bool:
        if call.name in _BLOCKS:
            return call.block is not None
        if self._maker(call.on, row) is not None or self._typed(call.on, row):
            return True
        if row.name == "redis-mutex" and call.name == "with_lock" and call.on is not None:
            return call.on.dotted() in ("RedisMutex", "Redis.Mutex")
        if call.on is None:
            return False
        if row.language == "go" and row.handle == "answer":
            return True  # no other package has these names with these arguments
        return self._guessed(call.on, row)

    def _is_held(self, call: Node, row: CodeLibrary) -> bool:
        """Whether a call is on a held lock, or on the client with the lock as its argument."""
        if call.on is None:
            return False
        if row.handle == "receiver":
            return self._maker(call.on, row) is not None or self._typed(call.on, row)
        if self._taken(call.on, row) is not None or self._typed(call.on, row):
            return True
        if self._maker(call.on, row) is not None:
            return True
        return self._guessed(call.on, row)

    def _typed(self, node: Node | None, row: CodeLibrary) -> bool:
        return node is not None and self.names.type_of(node) in row.types

    def _mistyped(self, node: Node | None, row: CodeLibrary) -> bool:
        """Whether the source declares another type, such as the asynchronous twin of a lock."""
        if node is None or self.source.language not in TYPED:
            return False
        declared = self.names.type_of(node)
        return declared not in ("", "var", "Lock", *row.types)

    def _guessed(self, node: Node, row: CodeLibrary) -> bool:
        if self.source.language in TYPED or not row.guess:
            return False
        resolved = self.names.resolve(node)
        if resolved.kind == "call" and resolved.made:
            return False  # made by something else
        return bool(re.search(row.guess, node.words_of().removeprefix("self."), re.I))

    def _taken(self, node: Node, row: CodeLibrary) -> Node | None:
        """The acquire whose answer an expression is."""
        found = self.names.resolve(node)
        if found.kind == "call" and any(_fits(found, m) for m in row.acquires):
            return found
        return None

    def _lease(self, call: Node, row: CodeLibrary, method: Method) -> dict[str, Any]:
        values: dict[str, Any] = {"lease": row.lease}
        if row.lease == "session":
            return values
        given, unit = None, method.lease_unit_ns
        for word in method.lease_words:
            given = call.words.get(word, given)
        if 0 <= method.lease_at < len(call.args):
            given = call.args[method.lease_at]
            if method.unit_at >= 0:
                unit = self.names.unit_of(call.args[method.unit_at])
        if given is None:
            given, unit = self._option(call, row), row.lease_unit_ns
        if given is None:
            values["lease_ns"] = row.lease_default_ns
            if row.lease_default_ns is None:
                del values["lease_ns"]
            return values
        if not unit:
            return values
        values |= {"lease_word": given.words_of(), "lease_unit_ns": unit}
        lease_ns = self.names.duration_ns(given, unit)
        if lease_ns is not None and lease_ns > 0:
            values["lease_ns"] = lease_ns
        return values

    def _option(self, call: Node, row: CodeLibrary) -> Node | None:
        """A lease among the arguments of the maker."""
        maker = self._maker(call.on, row)
        if maker is None:
            return None
        for arg in maker.args:
            if arg.kind == "call" and arg.name in row.lease_options and arg.args:
                return arg.args[0]
        for holder in (maker, *(a for a in maker.args if a.kind == "dict")):
            for word in row.lease_options:
                if word in holder.words:
                    return holder.words[word]
        return None

    def _common(self, row: CodeLibrary) -> dict[str, Any]:
        return {"library": row.name, "family": row.family, "language": self.source.language}

    def _grant(self, call: Node, row: CodeLibrary, method: Method) -> Iterator[Fact]:
        block = call.block
        if block is None and call.args and call.args[-1].kind == "function":
            block = call.args[-1]
        as_block = method.block and block is not None
        renewing = row.renewing if method.renewing is None else method.renewing
        lease = self._lease(call, row, method)
        if "lease_word" in lease and method.renewing is False and lease.get("lease_ns", 1) < 0:
            renewing = True
        key = call.args[0] if call.args else None
        values = {
            **self._common(row),
            "key": None if key is None else self.names.text(key),
            "renewing": renewing,
            **lease,
        }
        where, scope = place(self.names, call), scope_name(call)
        yield Fact("lock", where, values, scope)
        values = {
            **values,
            "how": "with" if as_block else "call",
            "with_raises": not method.runs,
            "may_fail": method.fails in ("false", "error"),
        }
        if as_block and block is not None:
            values |= {"end": call.end_line, "freed": True, "protected": True, "work": False}
            values["use"] = _use_of_block(block)
        else:
            values["use"] = _best(call, method.answers)
            takes = self._calls_on(call, row, {m.name for m in row.acquires})
            values |= section(self.names, call, self._frees(call, row), takes)
            if self._is_handed_on(call, row):
                values["work"] = False  # kept somewhere: released here only if that fails
        fact = Fact("grant", where, values, scope)
        yield fact
        yield from inside(self.names, fact, call)

    def _frees(self, call: Node, row: CodeLibrary) -> list[Node]:
        """The calls of the file that free what this call takes, where that can be told."""
        handle = self._handle(call, row)
        function = function_of(call) or self.source.root
        if not handle or returned(function, handle):
            return []
        return self._calls_on(call, row, {m.name for m in row.releases})

    def _calls_on(self, call: Node, row: CodeLibrary, methods: set[str]) -> list[Node]:
        """The calls of these methods on the lock that a call takes, or with it as argument."""
        handle = self._handle(call, row)
        return [
            other
            for other in self.source.calls
            if handle
            and other.name in methods
            and other.on is not None
            and (
                other.on.words_of() == handle or any(a.words_of() == handle for a in other.args[:1])
            )
        ]

    @staticmethod
    def _handle(call: Node, row: CodeLibrary) -> str:
        """The name by which the lock that is taken here is known; "" if it has none."""
        if row.handle == "receiver":
            return call.on.words_of() if call.on is not None else ""
        parent = call.parent
        if parent is not None and parent.kind == "assign" and parent.targets:
            return parent.targets[0].words_of()
        return ""

    def _is_handed_on(self, call: Node, row: CodeLibrary) -> bool:
        """Whether the lock is given to a call that is not its release."""
        handle = self._handle(call, row)
        function = function_of(call) or self.source.root
        return any(
            other.kind == "call"
            and not decides_nothing(other)
            and any(a.kind in ("name", "field") and a.words_of() == handle for a in other.args)
            for other in function.walk()
        )

    def _renew(self, call: Node, row: CodeLibrary, method: Method) -> Fact:
        handlers = handlers_of(call)
        lease = self._lease(call, row, method)
        values = {
            **self._common(row),
            "use": _best(call, method.answers),
            "fails_by": "false" if method.fails != "raise" else "raise",
            "swallowed": bool(handlers) and all(only_notes(h) for h in handlers),
            "guard": row.release_guard,
            **lease,
            **every(self.names, call),
        }
        return Fact("renew", place(self.names, call), values, scope_name(call))

    def _release(self, call: Node, row: CodeLibrary, method: Method) -> Fact:
        values = {
            **self._common(row),
            "use": use_of(call),
            "guard": row.release_guard if method.guarded else "",
            "in_finally": in_finally(call),
            "silenced": silenced(call),
        }
        return Fact("release", place(self.names, call), values, scope_name(call))

    def _scheduled(self, note: Node) -> Iterator[Fact]:
        """@SchedulerLock: the whole method is the section."""
        row, method = CODE_LIBRARIES["ShedLock"], note.parent
        values: dict[str, Any] = {**self._common(row), "lease": "ttl", "renewing": False}
        given = note.words.get("lockAtMostFor")
        if given is not None:
            text = self.names.text(given) or ""
            lease_ns, unit = _text_ns(text)
            if lease_ns is not None:
                values |= {"lease_ns": lease_ns, "lease_word": text, "lease_unit_ns": unit}
        where = place(self.names, note)
        yield Fact("lock", where, values, scope_name(note))
        if method is None or method.kind != "function":
            return
        values |= {"how": "with", "use": "with", "with_raises": True, "may_fail": False}
        values |= {"end": method.end_line, "freed": True, "protected": True, "work": False}
        fact = Fact("grant", where, values, scope_name(note))
        yield fact
        probe = Fact("grant", where, {**values, "around": method}, fact.scope)
        yield from inside(self.names, probe, note)


def _fits(call: Node, method: Method) -> bool:
    """Whether a call is this method, by its name, its arguments and its keywords."""
    if call.name != method.name:
        return False
    if method.needs_word and method.needs_word not in _words(call):
        return False
    if method.without_word and method.without_word in _words(call):
        return False
    if method.block and not call.args and call.block is None:
        return False
    few, many = method.args
    return few <= len(call.args) + (1 if call.words else 0) and len(call.args) <= many


def _words(call: Node) -> set[str]:
    return {*call.words, *(w for a in call.args if a.kind == "dict" for w in a.words)}


def _best(call: Node, answers: tuple[int, ...]) -> str:
    """The best that is done with one of the parts of an answer."""
    order = ("checked", "used", "unchecked", "dropped")
    return min((use_of(call, at) for at in answers), key=order.index)


def _use_of_block(block: Node) -> str:
    """Whether a block that runs without the lock as well looks at what it is given."""
    if block.body is None or (block.body.kind == "block" and not block.body.args):
        return "used"  # nothing is done in it
    if not block.params:
        return "unchecked"
    for node in block.walk():
        if node.kind == "name" and node.name == block.params[0].name:
            return use_of_name(Node("name", _At(block), name=node.name), block)
    return "unchecked"


class _At:
    """A place, for a node that is not in the text."""

    def __init__(self, node: Node) -> None:
        self.start_point = (node.line - 1, node.column - 1)
        self.end_point = (node.end_line - 1, 0)


def _text_ns(text: str) -> tuple[int | None, int]:
    """(duration, unit of a bare number) of "10m", "PT10M" or "600000"."""
    simple = re.fullmatch(r"\+?(\d+)([a-zA-Z]{0,2})", text)
    if simple and simple[2].lower() in _TEXT_NS:
        return int(simple[1]) * _TEXT_NS[simple[2].lower()], 0 if simple[2] else MS
    iso = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?", text)
    if iso and any(iso.groups()):
        parts = zip(iso.groups(), (86400, 3600, 60, 1), strict=True)
        return sum(int(n or 0) * s for n, s in parts) * S, 0
    return None, 0
