"""What a name in JavaScript, Go, Java or Ruby stands for: one level of data flow over given files.

    names = Names({"a.go": source}, environment)
    names.resolve(node)                  # constants, defaults, fields of self, other files
    names.duration_ns(node, unit_ns)     # 30*time.Second, Duration.ofSeconds(30), 30.seconds
    names.text(node)                     # "lock:{}"

Traps: a name with two assignments stands for nothing.  A constant of another file counts if exactly
one given file of the language has that name at its top and the file that uses it can mean it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from checkers.audit.languages.tree import Node, Param, Source
from harness.core.limits import AUDIT_FOLLOW_MAX

S = 1_000_000_000
_GO_UNITS = {
    "Nanosecond": 1, "Microsecond": 1_000, "Millisecond": 1_000_000, "Second": S,
    "Minute": 60 * S, "Hour": 3600 * S,
}  # fmt: skip
_JAVA_UNITS = {
    "NANOSECONDS": 1, "MICROSECONDS": 1_000, "MILLISECONDS": 1_000_000, "SECONDS": S,
    "MINUTES": 60 * S, "HOURS": 3600 * S, "DAYS": 86400 * S,
}  # fmt: skip
_OF = {
    "ofNanos": 1, "ofMillis": 1_000_000, "ofSeconds": S, "ofMinutes": 60 * S, "ofHours": 3600 * S,
    "ofDays": 86400 * S,
}  # fmt: skip
_TO = {
    "toNanos": 1, "toMicros": 1_000, "toMillis": 1_000_000, "toSeconds": S, "getSeconds": S,
    "toMinutes": 60 * S,
}  # fmt: skip
_RUBY_S = {
    "second": 1, "seconds": 1, "minute": 60, "minutes": 60, "hour": 3600, "hours": 3600,
    "day": 86400, "days": 86400,
}  # fmt: skip
_SAME = {  # calls whose answer is their argument or receiver, for a number or a text
    "Number", "parseInt", "parseFloat", "Duration", "int", "int64", "float64", "Integer", "Long",
    "valueOf", "parseLong", "to_i", "to_f", "to_s", "freeze", "String", "Float", "strip",
    "stripIndent", "longValue", "intValue", "NewScript", "DefaultRedisScript", "of", "trim",
}  # fmt: skip
_FORMATS = {"Sprintf", "format", "formatted"}
SELVES = ("this", "self")


class Names:
    """All trees of one language, and the variables of .env files."""

    def __init__(self, sources: Mapping[str, Source], environment: Mapping[str, str]) -> None:
        self.sources, self.environment = sources, environment
        self._home = {id(s.root): s for s in sources.values()}
        self._assigned: dict[tuple[int, str], list[tuple[Node | None, Node]]] = {}
        self._fields: dict[tuple[int, str], list[Node | None]] = {}
        self._types: dict[tuple[int, str], str] = {}
        self._tops: dict[str, list[tuple[Source, str, Node]]] = {}
        self._called: dict[tuple[str, str], list[Node]] = {}
        for source in sources.values():
            self._index(source)

    def _index(self, source: Source) -> None:
        for node in source.nodes:
            if node.kind == "assign":
                self._assign(source, node)
            elif node.kind == "other" and node.name == "declared":
                for target in node.args:
                    if target.kind == "name" and node.type:
                        self._types[id(scope_of(node)), target.name] = node.type
            elif node.kind == "function":
                owner = class_of(node) if node.name == "constructor" else None
                for param in node.params:
                    if param.type:
                        self._types[id(node), param.name] = param.type
                        if owner is not None:  # "private redlock: Redlock" is a field, too
                            self._types.setdefault((id(owner), param.name), param.type)
            elif node.kind == "call":
                self._called.setdefault((source.path, node.name), []).append(node)

    def _assign(self, source: Source, node: Node) -> None:
        scope = scope_of(node)
        for target in node.targets:
            value = node.value if len(node.targets) == 1 or target is node.targets[0] else None
            if value is not None and value.kind == "list" and len(node.targets) > 1:
                value = None
            if target.kind == "name":
                self._assigned.setdefault((id(scope), target.name), []).append((value, node))
                if node.type:
                    self._types[id(scope), target.name] = node.type
                owner = scope.name if scope.kind == "class" else ""
                if value is not None and (scope is source.root or scope.kind == "class"):
                    self._tops.setdefault(target.name, []).append((source, owner, value))
            elif target.kind == "field" and target.on is not None and target.on.name in SELVES:
                owner_class = class_of(node)
                if owner_class is not None:
                    key = (id(owner_class), target.name)
                    self._fields.setdefault(key, []).append(value)

    def home(self, node: Node) -> Source:
        """The file that a node is from."""
        return self._home[id(top_of(node))]

    def type_of(self, node: Node) -> str:
        """The declared type of a name or field; "" if none is declared in this file."""
        name = node.name if node.kind in ("name", "field") else ""
        if node.kind == "field" and (node.on is None or node.on.name not in SELVES):
            return ""
        for parent in node.above():
            found = self._types.get((id(parent), name))
            if found:
                return found
        return ""

    def resolve(self, node: Node, depth: int = 0) -> Node:
        """What an expression stands for, as far as it can be followed; else itself."""
        if depth > AUDIT_FOLLOW_MAX:
            return node
        found: Node | None = None
        if node.kind == "name":
            found = self._name(node)
        elif node.kind == "field":
            found = self._field(node)
        elif node.kind == "binary" and node.name in ("||", "??", "or"):
            known = self._environment(node.args[0])
            found = known if known is not None else self._fallback(node)
        elif node.kind == "call":
            found = self._environment(node) or self._same(node)
        return node if found is None else self.resolve(found, depth + 1)

    def _fallback(self, node: Node) -> Node | None:
        left = node.args[0]
        while left.kind == "call" and left.name in _SAME and left.args:
            left = left.args[0]
        reads = left.dotted()
        return node.args[1] if reads.startswith(("process.env.", "ENV")) else None

    def _environment(self, node: Node) -> Node | None:
        name, default = "", None
        if node.kind == "field" and node.dotted().startswith("process.env."):
            name = node.name
        elif node.kind == "call" and node.dotted() in ("os.Getenv()", "System.getenv()"):
            name = node.args[0].name if node.args else ""
        elif node.kind == "call" and node.dotted() == "ENV.fetch()" and node.args:
            name, default = node.args[0].name, node.args[1] if len(node.args) > 1 else None
        elif node.kind == "call" and node.name in _SAME and len(node.args) == 1:
            return self._environment(node.args[0])
        if not name:
            return None
        known = self.environment.get(name)
        if known is None:
            return default
        made = Node.__new__(Node)
        for slot in Node.__slots__:
            setattr(made, slot, getattr(node, slot))
        made.kind, made.name, made.kids = "string", known, []
        return made

    def _same(self, node: Node) -> Node | None:
        if node.name in _SAME and len(node.args) >= 1 and not node.words:
            return node.args[0]
        if node.name in _SAME and node.on is not None and not node.args:
            return node.on
        return None

    def _name(self, node: Node) -> Node | None:
        for parent in node.above():
            if parent.kind not in ("function", "class", "block") or (
                parent.kind == "block" and parent.parent is not None
            ):
                continue
            values = self._assigned.get((id(parent), node.name), [])
            if parent.kind == "function":
                parameter = self._parameter(parent, node.name)
                if values:
                    return values[0][0] if len(values) == 1 and parameter is None else None
                if parameter is not None:
                    return parameter[0]
            elif values:
                return values[0][0] if len(values) == 1 else None
        return self._elsewhere(node, node.name, "")

    def _parameter(self, function: Node, name: str) -> tuple[Node | None] | None:
        found = next((p for p in function.params if p.name == name), None)
        if found is None:
            return None
        source = self.home(function)
        calls = self._called.get((source.path, function.name), []) if function.name else []
        names = [p.name for p in function.params]
        if source.language == "go" and calls and len(calls[0].args) == len(names) - 1:
            names = names[1:]  # the receiver
        given = []
        for call in calls:
            at = names.index(name) if name in names else -1
            if name in call.words:
                given.append(call.words[name])
            elif 0 <= at < len(call.args):
                given.append(call.args[at])
        if given:
            return (given[0] if len(given) == 1 and len(calls) == 1 else None,)
        return (found.default,)

    def _field(self, node: Node) -> Node | None:
        if node.on is not None and node.on.kind == "name" and node.on.name in SELVES:
            owner = class_of(node)
            if owner is None:
                return None
            values = [
                *self._fields.get((id(owner), node.name), []),
                *(v for v, _ in self._assigned.get((id(owner), node.name), [])),
            ]
            real = [v for v in values if v is None or v.kind != "const" or v.value is not None]
            return real[0] if len(real) == 1 else None
        if node.on is not None and node.on.kind in ("name", "field"):
            known = self._environment(node)
            return known if known is not None else self._elsewhere(node, node.name, node.on.name)
        return None

    def _elsewhere(self, node: Node, name: str, owner: str) -> Node | None:
        """A constant at the top of another file, if exactly one file can be meant."""
        source = self.home(node)
        if source.language in ("javascript",) and (owner or name) not in source.imports:
            return None
        wanted = name
        module = source.imports.get(owner or name, "")
        if source.language == "javascript" and not owner:
            module, _, wanted = module.partition(":")
            wanted = wanted or name
        found = [
            value
            for other, inside, value in self._tops.get(wanted, [])
            if self._can_mean(source, other, inside, owner, module)
        ]
        return found[0] if len(found) == 1 else None

    @staticmethod
    def _can_mean(source: Source, other: Source, inside: str, owner: str, module: str) -> bool:
        if source.language != other.language:
            return False
        there, here = PurePosixPath(other.path), PurePosixPath(source.path)
        if source.language == "javascript":
            tail = module.rpartition("/")[2].rpartition(".js")[0] or module.rpartition("/")[2]
            return module.startswith(".") and tail in (there.stem, there.parent.name)
        if source.language == "go":
            return there.parent == here.parent if not owner else there.parent.name == owner
        if source.language == "java":
            return bool(owner) and inside == owner
        return not owner or inside == owner

    def number(self, node: Node) -> float | None:
        """The number that an expression stands for, or None; durations of Go are in ns."""
        node = self.resolve(node)
        if node.kind == "number":
            return node.value if isinstance(node.value, float) else None
        if node.kind == "string":
            try:
                return float(node.name)
            except ValueError:
                return None
        if node.kind == "field" and node.dotted() == f"time.{node.name}":
            return _GO_UNITS.get(node.name)
        if node.kind == "unary" and node.name == "-" and node.args:
            inner = self.number(node.args[0])
            return None if inner is None else -inner
        if node.kind == "binary" and len(node.args) == 2:
            left, right = self.number(node.args[0]), self.number(node.args[1])
            return None if left is None or right is None else _fold(node.name, left, right)
        if node.kind == "call":
            return self._converted(node)
        return None

    def _converted(self, node: Node) -> float | None:
        if node.name in _RUBY_S and node.on is not None and not node.args:
            inner = self.number(node.on)
            return None if inner is None else inner * _RUBY_S[node.name]
        if node.name in _TO and node.on is not None:
            if node.args and node.on.name in _JAVA_UNITS:
                inner = self.number(node.args[0])
                ns = None if inner is None else inner * _JAVA_UNITS[node.on.name]
            else:
                ns = self.duration_ns(node.on, 0)
            return None if not ns else ns / _TO[node.name]
        return None

    def duration_ns(self, node: Node, unit_ns: int) -> int | None:
        """The duration that an expression in ``unit_ns`` stands for, or None."""
        found = self.resolve(node)
        if found.kind == "call" and found.name in _OF and found.args:
            inner = self.number(found.args[0])
            return None if inner is None else round(inner * _OF[found.name])
        value = self.number(found)
        return None if value is None or not unit_ns else round(value * unit_ns)

    @staticmethod
    def unit_of(node: Node) -> int:
        """The nanoseconds of TimeUnit.SECONDS and its like; 0 if it is none."""
        return _JAVA_UNITS.get(node.name, 0) if node.kind in ("name", "field") else 0

    def text(self, node: Node) -> str | None:
        """The string that an expression stands for; parts that are not known read ``{}``."""
        node = self.resolve(node)
        if node.kind == "string":
            return node.name
        if node.kind == "binary" and node.name == "+":
            sides = [self.text(a) for a in node.args]
            return None if not any(sides) else "".join(s if s is not None else "{}" for s in sides)
        if node.kind == "call" and node.name in _FORMATS and node.args:
            return self.text(node.args[0])
        return None

    def key(self, node: Node) -> str:
        """The same text for two expressions that stand for the same key."""
        text = self.text(node)
        if text is not None and "{}" not in text:
            return f"={text}"
        return self.resolve(node).words_of() or node.words_of()


def top_of(node: Node) -> Node:
    """The root of the tree that a node is in."""
    while node.parent is not None:
        node = node.parent
    return node


def scope_of(node: Node) -> Node:
    """Where a name assigned here lives: function, class or file."""
    last = node
    for parent in node.above():
        if parent.kind in ("function", "class"):
            return parent
        last = parent
    return last


def class_of(node: Node) -> Node | None:
    """The innermost class around a node."""
    return next((p for p in node.above() if p.kind == "class"), None)


def _fold(sign: str, left: float, right: float) -> float | None:
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    return left / right if sign == "/" and right else None


__all__ = ["Names", "Param", "class_of", "scope_of"]
