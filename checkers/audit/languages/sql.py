"""Facts about locks in SQL files: advisory locks, and tables that keep locks.

    DELETE FROM locks WHERE name = :name        ->  release, guard ""
    PERFORM pg_advisory_unlock(42);             ->  release, its answer is dropped

Statements are told apart by a small scanner that knows quotes, comments and ``$$``; only those that
name a lock are parsed, by sqlglot.  Bodies of functions are looked into.

Traps: a table is one of locks if its name says so and the file gives it a column for the owner; a
SELECT shows its answer to whoever sent it, so only PERFORM drops it.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from checkers.audit.languages.grammars import MissingGrammar
from checkers.audit.model import Fact, Place

_PIECE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|(\$\w*\$).*?\1|;", re.S)
_ABOUT = re.compile(r"advisory|lock|lease|mutex|leader|semaphore", re.I)
_TABLE = re.compile(r"(^|_)(d?locks?|mutex(es)?|leases?|leaders?|leader_election|semaphores?)$")
_OWNER = re.compile(
    r"owner|holder|token|locked_?by|taken_?by|claimed_?by|client|session|worker|instance|fenc"
    r"|process_?id|\bpid\b|host",
    re.I,
)
_TIME = re.compile(r"expir|lease|ttl|until|valid|heartbeat|locked_?at|acquired_?at|renewed", re.I)
_ADVISORY = re.compile(r"^pg_(try_)?advisory_(xact_)?lock(_shared)?$")
_UNLOCK = re.compile(r"^pg_advisory_unlock(_shared)?$")
_PERFORM = re.compile(
    r"\bPERFORM\s+(pg_(?:try_)?advisory_(?:xact_)?(?:un)?lock(?:_shared)?)\s*\([^;]*;", re.I
)
GUARD = "a condition on the owner in the statement that changes the row"
ROWS, ADVISORY = "lock table", "advisory lock"


class Statement(msgspec.Struct, frozen=True):
    """One statement and its lines."""

    text: str
    line: int
    end_line: int


def statements(text: str, first: int = 1) -> Iterator[Statement]:
    """The statements of a text, comments left in place."""
    start = 0
    for piece in _PIECE.finditer(text):
        if piece[0] == ";":
            yield from _statement(text, start, piece.start(), first)
            start = piece.end()
    yield from _statement(text, start, len(text), first)


def _statement(text: str, start: int, end: int, first: int) -> Iterator[Statement]:
    body = text[start:end]
    skip = re.match(r"(?:\s|--[^\n]*|/\*.*?\*/)*", body, re.S)
    lead = skip.end() if skip else 0
    if body[lead:].strip():
        line = first + text.count("\n", 0, start + lead)
        yield Statement(body[lead:].rstrip(), line, line + body[lead:].rstrip().count("\n"))


def _sqlglot() -> Any:
    try:
        glot = importlib.import_module("sqlglot")
    except ImportError as error:
        raise MissingGrammar("sql", "sqlglot") from error
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of each dialect it meets
    return glot


def sql_facts(path: str, text: str) -> list[Fact]:
    """All facts of one file; MissingGrammar where sqlglot is not installed."""
    if not _ABOUT.search(text):
        return []
    reader = _Reader(path, _sqlglot())
    for statement in statements(text):
        if _ABOUT.search(statement.text):
            reader.read(statement)
    return reader.facts()


def planned(text: str) -> str:
    """Why the planner decides how often a lock function in this statement runs, or "".

    text: a statement in a string of another language; ``{}`` stands for what is put in.
    """
    if not re.search(r"\b(where|limit)\b", text, re.I):
        return ""
    try:
        glot = _sqlglot()
        tree = glot.parse_one(text.replace("{}", "1"), dialect="postgres")
    except MissingGrammar:
        return ""
    except (glot.errors.SqlglotError, RecursionError):
        return ""
    calls = [] if tree is None else tree.find_all(glot.exp.Anonymous)
    whys = [_planned(glot.exp, c) for c in calls if _ADVISORY.match(str(c.this).lower())]
    return next((why for why in whys if why), "")


class _Reader:
    def __init__(self, path: str, glot: Any) -> None:
        self.path, self.glot = path, glot
        self.found: list[Fact] = []
        self.columns: dict[str, set[str]] = {}  # of tables that may keep locks
        self.made: dict[str, tuple[Statement, set[str]]] = {}
        self.changes: list[tuple[Statement, Any, str]] = []

    def read(self, statement: Statement) -> None:
        """Parses one statement and remembers what it says about locks."""
        body = re.search(r"(\$\w*\$)(.*?)\1", statement.text, re.S)
        if body is not None:
            self._performed(body[2], statement.line + statement.text.count("\n", 0, body.start(2)))
            return
        try:
            tree = self.glot.parse_one(statement.text, dialect="postgres")
        except (self.glot.errors.SqlglotError, RecursionError):
            return
        kind = tree.key if tree is not None else ""
        if kind in ("delete", "update", "insert", "create"):
            self._table(statement, tree, kind)
        elif kind == "select":
            self._select(statement, tree)

    def _place(self, statement: Statement) -> Place:
        return Place(self.path, statement.line, statement.end_line)

    def _performed(self, body: str, first: int) -> None:
        """PERFORM drops the answer, which for these functions says who has the lock."""
        for call in _PERFORM.finditer(body):
            line = first + body.count("\n", 0, call.start())
            where = Place(self.path, line, line + call[0].count("\n"))
            self._advisory(call[1].lower(), where, "dropped")

    def _advisory(self, name: str, where: Place, use: str) -> None:
        values: dict[str, Any] = {
            "library": ADVISORY, "family": "postgres", "language": "sql", "use": use,
        }  # fmt: skip
        if _UNLOCK.match(name):
            values |= {"guard": "the session that took it", "boolean": True}
            self.found.append(Fact("release", where, values))
            return
        found = _ADVISORY.match(name)
        if found is None:
            return
        values |= {"lease": "transaction" if found[2] else "session", "try": bool(found[1])}
        values |= {"how": "call", "may_fail": bool(found[1]), "with_raises": True}
        values |= {"renewing": False, "freed": False}
        self.found += [Fact("lock", where, values), Fact("grant", where, values)]

    def _select(self, statement: Statement, tree: Any) -> None:
        exp = self.glot.exp
        for call in tree.find_all(exp.Anonymous):
            name = str(call.this).lower()
            before = len(self.found)
            self._advisory(name, self._place(statement), "used")
            why = _planned(exp, call)
            if why and len(self.found) > before and _ADVISORY.match(name):
                grant = self.found[-1]
                values = {**grant.values, "planned": why}
                self.found[-1] = Fact("grant", grant.place, values)

    def _table(self, statement: Statement, tree: Any, kind: str) -> None:
        exp = self.glot.exp
        table = tree.find(exp.Table)
        name = "" if table is None else str(table.name).lower()
        if not _TABLE.search(name):
            return
        columns = {str(c.name).lower() for c in tree.find_all(exp.Column)}
        if kind == "create":
            if str(tree.args.get("kind")).upper() != "TABLE":
                return
            kinds = {str(c.name).lower(): str(c.kind).lower() for c in tree.find_all(exp.ColumnDef)}
            columns |= set(kinds)
            timed = {c for c, k in kinds.items() if "time" in k or "date" in k or _TIME.search(c)}
            if kinds:
                self.made[name] = (statement, timed)
        elif kind == "insert" and isinstance(tree.this, exp.Schema):
            columns |= {str(c.name).lower() for c in tree.this.expressions}
        self.columns.setdefault(name, set()).update(columns)
        if kind != "create":
            self.changes.append((statement, tree, name))

    def facts(self) -> list[Fact]:
        """Facts about tables come last: their columns are known only now."""
        for statement, tree, name in self.changes:
            if any(_OWNER.search(c) for c in self.columns[name]):
                self._change(statement, tree, name)
        return self.found

    def _change(self, statement: Statement, tree: Any, name: str) -> None:
        exp, where = self.glot.exp, self._place(statement)
        values: dict[str, Any] = {"library": ROWS, "family": "sql", "language": "sql"}
        if tree.key == "insert":
            self._taken(statement, name, values)
            return
        condition = tree.args.get("where")
        if condition is None:
            return  # all rows: not what one owner does
        tested = {str(c.name).lower() for c in condition.find_all(exp.Column)}
        owner = any(_OWNER.search(c) for c in tested)
        values |= {"guard": GUARD if owner else "", "use": "used", "fails_by": "false"}
        values |= {"creates": False, "swallowed": False}
        if tree.key == "delete":
            if owner or not any(_TIME.search(c) for c in tested):
                self.found.append(Fact("release", where, values))
            return
        set_to = {
            str(e.this.name).lower(): e.expression
            for e in tree.expressions
            if isinstance(e, exp.EQ) and isinstance(e.this, exp.Column)
        }
        owners = {c: v for c, v in set_to.items() if _OWNER.search(c)}
        if any(isinstance(v, exp.Null) for v in owners.values()):
            self.found.append(Fact("release", where, values))
        elif owners:
            if owner or any(_TIME.search(c) for c in tested):
                self._taken(statement, name, values)
            else:
                values |= {"creates": True}
                self.found.append(Fact("renew", where, values))
        elif any(_TIME.search(c) for c in set_to) and (
            owner or not any(_TIME.search(c) for c in tested)
        ):
            self.found.append(Fact("renew", where, values))

    def _taken(self, statement: Statement, name: str, values: dict[str, Any]) -> None:
        """A row that is inserted, or changed where it is free."""
        values = {k: v for k, v in values.items() if k not in ("guard", "creates", "swallowed")}
        values |= {"lease": "ttl", "renewing": False, "how": "call", "use": "used"}
        values |= {"may_fail": True, "freed": False, "with_raises": True}
        where = self._place(statement)
        made = self.made.get(name)
        if made is not None and not made[1]:
            values["lease_ns"] = None
        self.found += [Fact("lock", where, values), Fact("grant", where, values)]


def _planned(exp: Any, call: Any) -> str:
    """Why the planner decides how often a lock function runs; "" if it does not."""
    select = call.find_ancestor(exp.Select)
    if select is None or select.args.get("from_") is None:
        return ""
    source = select.args["from_"].this
    if not isinstance(source, exp.Table):
        return ""  # a subquery: its limit is done before
    if call.find_ancestor(exp.Where) is not None:
        if isinstance(call.find_ancestor(exp.Where).this, exp.Anonymous):
            return ""  # the only condition
        return "stands in WHERE beside other conditions"
    if select.args.get("limit") is not None:
        return "stands in a SELECT with LIMIT"
    return ""
