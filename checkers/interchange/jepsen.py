"""Jepsen's ``history.edn`` (and the same maps as JSON): into our events and back.

    {:index 0, :time 318, :type :invoke, :process 0, :f :acquire, :value nil}
    #jepsen.history.Op{:index 1, :time 900, :type :ok, :process 0, :f :acquire, :value nil}
    {:index 2, :time 905, :type :info, :process :nemesis, :f :start-partition, :value nil}

Tests of many keys wrap each value into a pair ``[k v]``.  Printed, such a pair is not to be told
from a value that is a vector (a compare-and-set), so it is taken apart only on request
(``independent=True``) or where it carries a ``#jepsen.independent/...`` tag.

Traps: old files have no ``:index``, hand-made ones no ``:time``: the order of the file then
stands for both, all or nothing.  Keywords become plain strings.  ``test.jepsen`` is a binary
file of blocks that only Jepsen reads: use ``history.edn`` beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from checkers.interchange.edn import (
    EdnError,
    EdnSet,
    Keyword,
    Reader,
    dumps,
    keyword_like,
)
from checkers.interchange.files import Lines, open_read, open_write
from checkers.interchange.linemap import LineMap
from checkers.interchange.problems import Problems
from harness.core.errors import UserError
from harness.core.history import NEMESIS, OBSERVATIONS, Header, History, Op, Type

HEADER_COMMENT = "; lockhavoc-header "
_TYPES = frozenset(Type)
_FIELDS = ("index", "time", "type", "process", "f", "value", "key", "error", "extra")
_KNOWN = frozenset(_FIELDS)


class Pair:
    """A value with its key, from ``#jepsen.independent/tuple [k v]``."""

    __slots__ = ("key", "value")

    def __init__(self, key: Any, value: Any) -> None:
        self.key, self.value = key, value


def _tag(tag: str, value: Any) -> Any:
    if tag.startswith("jepsen.independent") and isinstance(value, list) and len(value) == 2:
        return Pair(value[0], value[1])
    return value


def plain(value: Any) -> Any:
    """``value`` with keywords as strings, sets as lists and string keys: what JSON can hold."""
    if isinstance(value, Keyword):
        return str(value)
    if isinstance(value, Pair):
        return [plain(value.key), plain(value.value)]
    if isinstance(value, dict):
        return {_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else dumps(value)


class Builder:
    """Makes events of maps, one after the other; remembers whether index and time are given."""

    def __init__(self, *, independent: bool = False) -> None:
        self._independent = independent
        self._given: dict[str, bool] = {}
        self._count = 0

    def op(self, form: Any) -> Op:
        """The event of a map; ValueError says what is wrong with it."""
        if not isinstance(form, dict):
            raise ValueError(f"{plain(form)!r:.60} is not a map; each form must be an event")
        position = self._count
        self._count += 1
        index = self._number(form, "index", position)
        time = self._number(form, "time", position)
        process = _process(form)
        key, value = self._key_value(form, process)
        return Op(
            index=index,
            time=time,
            process=process,
            type=_type(form),
            f=_f(form, process),
            key=key,
            value=value,
            error=_error(form.get("error")),
            extra=_extra(form),
        )

    def _number(self, form: Mapping[str, Any], name: str, position: int) -> int:
        found = form.get(name)
        if self._given.setdefault(name, found is not None) != (found is not None):
            raise ValueError(
                f":{name} is given for some events and not for others, must be all or none; add it"
            )
        if found is None:
            return position
        if isinstance(found, bool) or not isinstance(found, int):
            raise ValueError(f":{name} is {dumps(found)}, must be an integer")
        return found

    def _key_value(self, form: Mapping[str, Any], process: int | str) -> tuple[str | None, Any]:
        value = form.get("value")
        key = form.get("key")
        if isinstance(value, Pair):
            return _text(value.key), plain(value.value)
        if self._independent and process != NEMESIS:
            if not isinstance(value, list) or len(value) != 2:
                raise ValueError(
                    f":value is {dumps(plain(value)):.60}, must be a pair [key value] since "
                    "independent keys were asked for; leave that option out"
                )
            return _text(value[0]), plain(value[1])
        return None if key is None else _text(key), plain(value)


def _process(form: Mapping[str, Any]) -> int | str:
    found = form.get("process")
    if isinstance(found, bool) or not isinstance(found, int | str):
        raise ValueError(f":process is {dumps(plain(found))}, must be an integer or :nemesis")
    return str(found) if isinstance(found, str) else found


def _type(form: Mapping[str, Any]) -> str:
    found = form.get("type")
    if not isinstance(found, str) or found not in _TYPES:
        raise ValueError(f":type is {dumps(plain(found))}, must be :invoke, :ok, :fail or :info")
    return str(found)


def _f(form: Mapping[str, Any], process: int | str) -> str:
    found = form.get("f")
    if found is None and process == NEMESIS:
        return ""  # Jepsen logs free text as an event of the nemesis
    if not isinstance(found, str):
        raise ValueError(f":f is {dumps(plain(found))}, must be a keyword such as :acquire")
    return str(found)


def _error(found: Any) -> str | None:
    if found is None or isinstance(found, str):
        return None if found is None else str(found)
    return dumps(found)


def _extra(form: Mapping[Any, Any]) -> dict[str, Any]:
    extra = {_text(k): plain(v) for k, v in form.items() if k not in _KNOWN}
    nested = form.get("extra")
    if isinstance(nested, dict):
        extra.update(plain(nested))
    elif nested is not None:
        extra["extra"] = plain(nested)
    return extra


class EdnReader:
    """Iterates over the events of a ``history.edn``; attributes as JsonlReader's."""

    def __init__(self, path: Path, *, independent: bool = False) -> None:
        self.path = path
        self.header = Header()
        self.torn = False
        self.lines = LineMap()
        self._independent = independent

    def __iter__(self) -> Iterator[Op]:
        reader = Reader(tag=_tag, through_vector=True)
        builder = Builder(independent=self._independent)
        problems = Problems(self.path)
        source = Lines(self.path)
        try:
            for number, raw in source:
                try:
                    text = raw.decode()
                except UnicodeDecodeError as error:
                    if not source.last_has_newline:
                        break  # torn inside a character
                    raise EdnError(f"not UTF-8: {error.reason}", number) from error
                if number == 1 and text.startswith(HEADER_COMMENT):
                    self.header = _read_header(self.path, text)
                    continue
                for line, form in reader.feed(text, number):
                    try:
                        op = builder.op(form)
                    except ValueError as error:
                        problems.add(line, str(error))
                        continue
                    self.lines.add(line)
                    yield op
            reader.end()
        except EdnError as error:
            if error.ended and not source.last_has_newline:
                self.torn = True
            else:
                problems.add(error.line, f"{error.says}; not EDN")
        self.torn = self.torn or source.torn
        problems.raise_if_any()


def _read_header(path: Path, text: str) -> Header:
    try:
        return msgspec.json.decode(text[len(HEADER_COMMENT) :], type=Header)
    except msgspec.DecodeError as error:
        raise UserError(f"{str(path)!r}, line 1: bad header comment: {error}") from error


def read_edn(path: Path, *, independent: bool = False) -> History:
    """The whole file as a History.  UserError names every malformed form by its line."""
    reader = EdnReader(path, independent=independent)
    ops = list(reader)
    history = History(ops, reader.header, torn=reader.torn)
    history.lines = reader.lines
    return history


def read_json_array(path: Path, *, independent: bool = False) -> History:
    """A JSON array of such maps (as elle-cli reads them); read at once, not as a stream."""
    problems = Problems(path, unit="element")
    builder = Builder(independent=independent)
    try:
        with open_read(path) as file:
            found = json.loads(file.read())
    except (ValueError, RecursionError, EOFError, OSError) as error:
        raise UserError(f"{str(path)!r} is not a JSON array of events: {error}") from error
    ops = []
    for number, form in enumerate(found, 1):
        try:
            ops.append(builder.op(form))
        except ValueError as error:
            problems.add(number, str(error))
    problems.raise_if_any()
    return History(ops)


def op_to_map(op: Op, *, independent: bool = False) -> dict[Any, Any]:
    """An event as the map that Jepsen would write; ``independent``: value as [key value]."""
    form: dict[Any, Any] = {
        Keyword("index"): op.index,
        Keyword("time"): op.time,
        Keyword("type"): Keyword(op.type),
        Keyword("process"): Keyword(NEMESIS) if op.process == NEMESIS else op.process,
        Keyword("f"): Keyword(op.f) if keyword_like(op.f) else op.f,
        Keyword("value"): _keyed(op.value),
    }
    if independent and op.process != NEMESIS:
        form[Keyword("value")] = [op.key, _keyed(op.value)]
    elif op.key is not None:
        form[Keyword("key")] = op.key
    if op.error is not None:
        form[Keyword("error")] = Keyword(op.error) if op.error in OBSERVATIONS else op.error
    if op.extra and all(keyword_like(k) and k not in _FIELDS for k in op.extra):
        form.update({Keyword(k): _keyed(v) for k, v in op.extra.items()})
    elif op.extra:
        form[Keyword("extra")] = _keyed(op.extra)
    return form


def _keyed(value: Any) -> Any:
    """``value`` with keys of maps as keywords, where they can be read back as the same."""
    if isinstance(value, dict):
        return {Keyword(k) if keyword_like(k) else k: _keyed(v) for k, v in value.items()}
    if isinstance(value, EdnSet):
        return EdnSet(_keyed(item) for item in value)
    if isinstance(value, list | tuple):
        return [_keyed(item) for item in value]
    return value


def write_edn(
    ops: Iterable[Op], path: Path, header: Header | None = None, *, independent: bool = False
) -> int:
    """Writes one map a line; the header, if it says anything, as a comment on the first line.

    Returns the number of events.  Streams.  ``independent`` needs a key on every client event.
    """
    count = 0
    with open_write(path) as file:
        if header is not None and header != Header():
            text = msgspec.json.encode(header).decode()
            file.write(f"{HEADER_COMMENT}{text}\n".encode())
        for op in ops:
            if independent and op.key is None and op.process != NEMESIS:
                raise UserError(
                    f"event {op.index} has no key, but independent pairs [key value] were asked "
                    "for; leave that option out"
                )
            file.write(dumps(op_to_map(op, independent=independent)).encode() + b"\n")
            count += 1
    return count
