"""YAML as people write settings in it, with the line of each value.

    for document in documents(text): ...        # Node: line, value (dict, list, str or None)

Read are block and flow mappings and sequences, quoted and block scalars, comments, several
documents, anchors, aliases and merge keys.  All scalars are text: what ``no`` or ``1e3`` means is
the reader's business.  Source: YAML 1.2.2, chapters 6 to 9, without complex keys and directives.

Traps: what is not understood raises ValueError with its line, so that a file is listed as not read
and never half read.  Of a key that stands twice the later one counts, as with most readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_KEY = re.compile(
    r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|(?:[^\s\-?:,\[\]{}#&*!|>'"%@`]|[\-?:](?=\S))
    (?:[^:#]|:(?=\S)|(?<=\S)\#)*?)[ ]*:(?=[ ]|$)""",
    re.X,
)
_BLOCK = re.compile(r"[|>][+\-0-9]*$")
_DEPTH_MAX = 100


@dataclass
class Node:
    """A value and the line (from 1) on which it begins."""

    line: int
    value: Any  # dict[str, Node], list[Node], str, None

    def get(self, *path: str) -> Node | None:
        """The node below these keys, None if there is none."""
        node: Node | None = self
        for key in path:
            if node is None or not isinstance(node.value, dict):
                return None
            node = node.value.get(key)
        return node

    def items(self) -> list[tuple[str, Node]]:
        """Keys and nodes of a mapping; empty for anything else."""
        return list(self.value.items()) if isinstance(self.value, dict) else []

    def elements(self) -> list[Node]:
        """Elements of a sequence; empty for anything else."""
        return self.value if isinstance(self.value, list) else []


def documents(text: str) -> list[Node]:
    """All documents of a text; ValueError names the line that is not understood."""
    reader = _Reader(text)
    found = []
    while reader.lines:
        if reader.lines[0][2] in ("---", "..."):
            reader.lines.pop(0)
            continue
        found.append(reader.block(reader.lines[0][1], 0))
    return found


class _Reader:
    """A cursor over the lines that say something: (number, indentation, text)."""

    def __init__(self, text: str) -> None:
        self.raw = text.splitlines()
        self.anchors: dict[str, Node] = {}
        self.lines: list[tuple[int, int, str]] = []
        self._fill()

    def _fill(self) -> None:
        block: int | None = None  # indentation of the key whose block scalar runs
        for number, raw in enumerate(self.raw, 1):
            indent = len(raw) - len(raw.lstrip(" "))
            if block is not None:
                if not raw.strip() or indent > block:
                    continue
                block = None
            text = _uncommented(raw).strip()
            if not text or text.startswith("%"):
                continue
            if "\t" in raw[: indent + 1]:
                raise ValueError(f"line {number}: a tab before the text")
            if text.startswith("--- "):
                self.lines.append((number, 0, "---"))
                text, indent = text[4:].strip(), indent + 4
            self.lines.append((number, indent, text))
            if _BLOCK.search(text) and re.search(r"(?:^|[:\-] +|&\S+ +)[|>][+\-0-9]*$", text):
                block = indent

    def block(self, indent: int, depth: int) -> Node:
        """The node that begins at the first line left, which is indented by ``indent``."""
        if depth > _DEPTH_MAX:
            raise ValueError(f"line {self.lines[0][0]}: nested too deeply")
        number, _, text = self.lines[0]
        if text == "-" or text.startswith("- "):
            return self._sequence(indent, depth)
        if text[:1] not in "[{" and _KEY.match(text):
            return self._mapping(indent, depth)
        self.lines.pop(0)
        while self.lines and self.lines[0][1] >= indent and self.lines[0][2] not in ("---", "..."):
            if _KEY.match(self.lines[0][2]) and text[:1] not in "[{\"'":
                raise ValueError(f"line {self.lines[0][0]}: a key after a scalar")
            text += " " + self.lines.pop(0)[2]
        return self.scalar(text, number, indent, depth)

    def _sequence(self, indent: int, depth: int) -> Node:
        found = Node(self.lines[0][0], [])
        while self.lines and self.lines[0][1] == indent:
            number, _, text = self.lines[0]
            if text != "-" and not text.startswith("- "):
                break
            rest = text[1:].lstrip()
            if rest:
                inner = indent + len(text) - len(rest)
                self.lines[0] = (number, inner, rest)
                if (_KEY.match(rest) and rest[:1] not in "[{") or rest.startswith("- "):
                    found.value.append(self.block(inner, depth + 1))
                else:
                    self.lines.pop(0)
                    found.value.append(self.value(rest, number, indent, depth + 1))
            else:
                self.lines.pop(0)
                found.value.append(self.value("", number, indent, depth + 1))
        if self.lines and self.lines[0][1] > indent:
            raise ValueError(f"line {self.lines[0][0]}: indented by an odd amount")
        return found

    def _mapping(self, indent: int, depth: int) -> Node:
        found = Node(self.lines[0][0], {})
        while self.lines and self.lines[0][1] == indent:
            number, _, text = self.lines[0]
            key = _KEY.match(text)
            if key is None or text in ("---", "..."):
                break
            self.lines.pop(0)
            name = _unquoted(key["key"])
            node = self.value(text[key.end() :].strip(), number, indent, depth + 1)
            if name == "<<":
                for part in node.elements() or [node]:
                    for own, value in part.items():
                        found.value.setdefault(own, value)
            else:
                found.value[name] = Node(number, node.value)
        if self.lines and self.lines[0][1] > indent:
            raise ValueError(f"line {self.lines[0][0]}: not understood: {self.lines[0][2][:40]!r}")
        return found

    def value(self, text: str, number: int, indent: int, depth: int) -> Node:
        """What stands behind a key or a dash: on the same line, or below it."""
        anchor = ""
        while text[:1] in ("&", "!"):
            word, _, text = text.partition(" ")
            anchor, text = word[1:] if word[0] == "&" else anchor, text.strip()
        if _BLOCK.match(text):
            node = Node(number, self._literal(number, indent))
        elif text:
            node = self.scalar(text, number, indent + 1, depth)
        elif self.lines and (
            self.lines[0][1] > indent
            or (self.lines[0][1] == indent and self.lines[0][2].startswith("- "))
        ):
            node = self.block(self.lines[0][1], depth)
        else:
            node = Node(number, None)
        if anchor:
            self.anchors[anchor] = node
        return node

    def _literal(self, number: int, indent: int) -> str:
        lines = []
        for raw in self.raw[number:]:
            if raw.strip() and len(raw) - len(raw.lstrip(" ")) <= indent:
                break
            lines.append(raw.strip())
        return "\n".join(lines).strip("\n")

    def scalar(self, text: str, number: int, indent: int, depth: int) -> Node:
        """A scalar, an alias or a flow collection; lines that go on are taken as well."""
        if text[:1] == "*":
            node = self.anchors.get(text[1:].strip())
            if node is None:
                raise ValueError(f"line {number}: no anchor {text[1:].strip()!r}")
            return Node(number, node.value)
        closing = {"[": "]", "{": "}", '"': '"', "'": "'"}.get(text[:1])
        while closing and not _closed(text) and self.lines:
            text += " " + self.lines.pop(0)[2]
        if text[:1] in ("[", "{"):
            flow = _Flow(text, number, self.anchors)
            node = flow.node(depth)
            if flow.text[flow.at :].strip():
                raise ValueError(f"line {number}: not understood: {flow.text[flow.at :][:40]!r}")
            return node
        if closing:
            if not _closed(text):
                raise ValueError(f"line {number}: a quote is not closed")
            return Node(number, _unquoted(text))
        while self.lines and self.lines[0][1] >= indent and not _KEY.match(self.lines[0][2]):
            if self.lines[0][2].startswith(("- ", "---")):
                break
            text += " " + self.lines.pop(0)[2]
        return Node(number, None if text in ("~", "null") else text)


class _Flow:
    """``[a, {b: c}]`` on one line."""

    def __init__(self, text: str, number: int, anchors: dict[str, Node]) -> None:
        self.text, self.number, self.anchors, self.at = text, number, anchors, 0

    def node(self, depth: int) -> Node:
        """The node at the cursor."""
        if depth > _DEPTH_MAX:
            raise ValueError(f"line {self.number}: nested too deeply")
        self._space()
        here = self.text[self.at : self.at + 1]
        if here == "[":
            return Node(self.number, list(self._parts("]", depth)))
        if here == "{":
            pairs: dict[str, Node] = {}
            for part in self._parts("}", depth):
                bare = {str(part.value): Node(self.number, None)}
                pairs |= part.value if isinstance(part.value, dict) else bare
            return Node(self.number, pairs)
        quoted = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'").match(self.text, self.at)
        plain = re.compile(r"(?:[^,\[\]{}:]|:(?=[^\s,\[\]{}]))+").match(self.text, self.at)
        found = quoted or plain
        if found is None:
            raise ValueError(f"line {self.number}: not understood: {self.text[self.at :][:40]!r}")
        self.at = found.end()
        word = found[0].strip()
        if word[:1] == "*" and word[1:] in self.anchors:
            return self.anchors[word[1:]]
        return Node(self.number, _unquoted(word) if word not in ("~", "null") else None)

    def _parts(self, end: str, depth: int) -> Iterator[Node]:
        self.at += 1
        while True:
            self._space()
            if self.text[self.at : self.at + 1] == end:
                self.at += 1
                return
            node = self.node(depth + 1)
            self._space()
            if self.text[self.at : self.at + 1] == ":":
                self.at += 1
                self._space()
                bare = self.text[self.at : self.at + 1] in (",", end)
                node = Node(
                    self.number,
                    {str(node.value): Node(self.number, None) if bare else self.node(depth + 1)},
                )
                self._space()
            yield node
            if self.text[self.at : self.at + 1] == ",":
                self.at += 1
            elif self.text[self.at : self.at + 1] != end:
                raise ValueError(f"line {self.number}: no {end!r} where one is due")

    def _space(self) -> None:
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1


def _uncommented(raw: str) -> str:
    """A line without its comment; a # within quotes or words is none."""
    if "#" not in raw:
        return raw
    quote = ""
    for at, char in enumerate(raw):
        if quote:
            quote = "" if char == quote and raw[at - 1 : at] != "\\" else quote
        elif char in "\"'" and (at == 0 or raw[at - 1] in " [{,:("):
            quote = char
        elif char == "#" and (at == 0 or raw[at - 1] in " \t"):
            return raw[:at]
    return raw


def _closed(text: str) -> bool:
    """Whether quotes and brackets of a flow text are all closed."""
    depth, quote = 0, ""
    for at, char in enumerate(text):
        if quote:
            if char == quote and not (quote == '"' and text[at - 1] == "\\"):
                quote = ""
        elif char in "\"'" and (at == 0 or text[at - 1] in " [{,:"):
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
    return not quote and depth <= 0


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text[1:-1])
    return text
