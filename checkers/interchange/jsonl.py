"""JSON lines, the native form of a history: one event a line, a header line first if you like.

    {"schema":"lockhavoc/history/1","ttl_ns":10000000000}
    {"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"k"}
    {"index":1,"time":900,"process":0,"type":"ok","f":"acquire","key":"k","value":{"token":1}}

A million lines take about two seconds; files of any size can be read as a stream of ops
(``JsonlReader``), since nothing but the current line is kept.

Traps: a last line that is cut off (the writer was killed) is dropped and flagged, but only if its
newline is missing too; anywhere else a line that does not parse is an error with its number.
Integers are exact beyond 2^53.  Blank lines count as lines.  Unknown keys of an event are
ignored, unknown keys of the header too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from checkers.interchange.files import Lines, open_write
from checkers.interchange.linemap import LineMap
from checkers.interchange.problems import Problems
from harness.core.errors import UserError
from harness.core.history import SCHEMA, Header, History, Op

_FAMILY = SCHEMA.rpartition("/")[0]
_BATCH = 4096


class JsonlReader:
    """Iterates over the events of a file.

    ``header`` and ``torn`` are right once the iteration has ended (the header after the first
    event).  ``lines`` tells the line number of an event from its position.  Malformed lines are
    skipped while reading and raised together, as one UserError, at the end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = Header()
        self.torn = False
        self.lines = LineMap()

    def __iter__(self) -> Iterator[Op]:
        decode = msgspec.json.Decoder(Op).decode
        source = Lines(self.path)
        problems = Problems(self.path)
        mark = self.lines.add
        first = True
        for number, line in source:
            if first and not line.isspace():
                first = False
                header = _header(self.path, number, line)
                if header is not None:
                    self.header = header
                    continue
            try:
                op = decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                if line.isspace():
                    continue
                if not source.last_has_newline and not _is_json(line):
                    self.torn = True
                    continue
                problems.add(number, _explain(line, error))
                continue
            mark(number)
            yield op
        self.torn = self.torn or source.torn
        problems.raise_if_any()


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _header(path: Path, number: int, line: bytes) -> Header | None:
    """The header if ``line`` is one: an object with a "schema" and no "type"."""
    if b'"schema"' not in line:
        return None
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None  # torn or malformed: the caller's way of reading an event says which
    if not isinstance(found, dict) or "schema" not in found or "type" in found:
        return None
    if found["schema"] != SCHEMA:
        raise UserError(
            f"{str(path)!r}, line {number}: schema is {found['schema']!r}, this version reads "
            f"{SCHEMA!r}; "
            + (
                "use the release that wrote the file"
                if str(found["schema"]).startswith(_FAMILY)
                else "remove the line if the file is a plain list of events"
            )
        )
    try:
        return msgspec.convert(found, Header)
    except msgspec.ValidationError as error:
        raise UserError(f"{str(path)!r}, line {number}: bad header: {error}") from error


_RULES = {
    "index": "a growing integer",
    "time": "an integer number of ns since the start",
    "process": 'an integer, or a string such as "nemesis"',
    "type": "invoke, ok, fail or info",
    "f": 'the name of the operation, such as "acquire"',
    "key": "a string or null",
    "error": "a string or null",
    "extra": "an object",
}


def _explain(line: bytes, error: Exception) -> str:
    """What is wrong with a line, with the rule and the fix."""
    if isinstance(error, RecursionError):
        return "nested too deeply to be an event; write the value flat"
    says = str(error)
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError as syntax:
        shown = line[:60].decode("utf-8", "backslashreplace").rstrip()
        return f"not JSON ({syntax}): {shown!r}; each line must be one JSON object"
    if not isinstance(found, dict):
        return f"a JSON {_kind(found)}, must be an object with the fields of an event"
    for name, rule in _RULES.items():
        if f"field `{name}`" in says:
            return f"field {name!r} is missing, must be {rule}; add it"
        if f"$.{name}" in says:
            return f"field {name!r} is {found.get(name)!r}, must be {rule}"
    return says


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {list: "array", str: "string", bool: "boolean"}
    return "null" if value is None else kinds.get(type(value), "number")


def read_jsonl(path: Path) -> History:
    """The whole file as a History; ``torn`` and line numbers set.  UserError if malformed."""
    reader = JsonlReader(path)
    ops = list(reader)
    history = History(ops, reader.header, torn=reader.torn)
    history.lines = reader.lines
    return history


def write_jsonl(ops: Iterable[Op], path: Path, header: Header | None = None) -> int:
    """Writes a header line and one line per event (packed if ``path`` ends in .gz).

    Returns the number of events.  Streams: ``ops`` may be an iterator.
    """
    encoder = msgspec.json.Encoder()
    count = 0
    with open_write(path) as file:
        # Header.schema is omitted as a default by msgspec, but marks the line as a header.
        fields = {"schema": SCHEMA, **msgspec.to_builtins(header or Header())}
        file.write(encoder.encode(fields) + b"\n")
        batch: list[Op] = []
        for op in ops:
            batch.append(op)
            count += 1
            if len(batch) == _BATCH:
                file.write(encoder.encode_lines(batch))
                batch = []
        file.write(encoder.encode_lines(batch))
    return count
