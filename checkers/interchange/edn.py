"""EDN, the text form of Clojure data: enough of it to read and write Jepsen's histories.

Jepsen writes one map a line into ``history.edn``; pretty-printed maps over many lines, and one
vector around all of them, are found in the wild too.  A regular expression cuts the text into
tokens and a stack of open collections builds the values, so that depth is bounded by a number
and not by Python's stack, and a file of any size is read form by form.

    loads('{:process :nemesis, :value [1 nil #{2}]}')
    dumps({Keyword("f"): Keyword("acquire"), Keyword("n"): 1})

Traps: a keyword is not a string (``:nemesis`` against ``"nemesis"``): it comes back as Keyword,
which equals the string of its name.  A tagged value loses its tag unless the reader is
given a ``tag`` function.  Integers have no size limit; ``N`` and ``M`` endings are accepted.

Source: the specification at github.com/edn-format/edn.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.core.limits import EDN_DEPTH_MAX, EDN_STRING_BYTES_MAX


class EdnError(ValueError):
    """The text is not EDN.

    ``line`` counts from 1.  ``ended``: the text stopped inside a form or a token.
    """

    def __init__(self, says: str, line: int, *, ended: bool = False) -> None:
        self.says, self.line, self.ended = says, line, ended
        super().__init__(f"line {line}: {says}")


class Keyword(str):
    """``:name``; equal to the string of its name."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f":{self!s}"


@functools.lru_cache(maxsize=1024)
def _keyword(name: str) -> Keyword:
    return Keyword(name)


class EdnSet(list[Any]):
    """``#{...}``: its elements in the order of the text (they need not be hashable)."""


TagFunction = Callable[[str, Any], Any]


def drop_tag(tag: str, value: Any) -> Any:
    """The value as if it had no tag."""
    del tag
    return value


# Order matters: "#{" before "#tag", numbers before symbols (both may start with + or -).
_TOKEN = re.compile(
    r"""[\s,]*+(?:
      (?P<open>\#\{|[\[({])
    | (?P<close>[\])}])
    | :(?P<keyword>[^\s,;"()\[\]{}:][^\s,;"()\[\]{}]*)
    | (?P<number>[-+]?[0-9][^\s,;"()\[\]{}]*)
    | "(?P<string>(?:[^"\\]|\\.)*+)"
    | (?P<unended>")
    | \\(?P<char>[^\s,;"()\[\]{}]+|\S)
    | (?P<discard>\#_)
    | (?P<special>\#\#-?[A-Za-z]+)
    | \#(?P<tag>[A-Za-z][^\s,;"()\[\]{}]*)
    | (?P<comment>;[^\n]*)
    | (?P<symbol>[^\s,;"()\[\]{}\#\\:][^\s,;"()\[\]{}]*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"[\s,]*")
_PLAIN_INTEGER = re.compile(r"[1-9][0-9]*")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)N?")
# Not "007": Clojure reads a leading zero as octal, so refusing is better than guessing.
_FLOAT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?M?")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "b": "\b", "f": "\f"}
_CHARS = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r"}
_SPECIAL = {"##Inf": float("inf"), "##-Inf": float("-inf"), "##NaN": float("nan")}
_WORDS = {"nil": None, "true": True, "false": False}
_CLOSE = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_HALF_TOKENS = frozenset({":", "#", "##", "##-", "\\"})  # what a cut can leave at the end
_SIMPLE = frozenset({"keyword", "string", "number"})
_DISCARD = object()


class Reader:
    """Reads top-level forms from lines fed one after the other.

    ``through_vector``: if the text begins with ``[`` or ``(``, its elements are yielded
    one by one instead of the whole.  ``tag``: what to make of ``#tag value``.
    """

    def __init__(self, *, tag: TagFunction = drop_tag, through_vector: bool = False) -> None:
        self._tag = tag
        self._through_vector = through_vector
        self._started = False
        self._outer: str | None = None
        # A frame: [closing character, opening token, items, prefixes (tags and discards)].
        self._stack: list[tuple[str, str, list[Any], list[Any]]] = [("", "", [], [])]
        self._form_line = 1
        self._carry: list[str] = []
        self._carry_line = 1
        self._carry_length = 0

    def feed(self, text: str, line: int) -> Iterator[tuple[int, Any]]:
        """Yields (line where the form began, value) for each form that ``text`` completes."""
        if self._carry:
            self._carry.append(text)
            self._carry_length += len(text)
            if '"' not in text:
                self._check_carry()
                return
            text, line = "".join(self._carry), self._carry_line
            self._carry = []
        stack = self._stack
        top = stack[0][2]
        position = 0
        scan = _TOKEN.scanner(text).match  # type: ignore[attr-defined]  # not in typeshed
        while (match := scan()) is not None:
            position = match.end()
            kind = match.lastgroup
            frame = stack[-1]
            if kind in _SIMPLE and len(stack) > 1 and not frame[3]:
                # Nine tokens of ten; the general way below does the same, three times slower.
                found = match.group(kind)
                if kind == "keyword":
                    frame[2].append(_keyword(found))
                    continue
                if kind == "string" and "\\" not in found:
                    frame[2].append(found)
                    continue
                if kind == "number" and len(found) < 19 and _PLAIN_INTEGER.fullmatch(found):
                    frame[2].append(int(found))
                    continue
            if kind == "unended":
                self._carry, self._carry_line = [text[match.end() - 1 :]], line
                self._carry_length = len(self._carry[0])
                if len(stack) == 1 and not stack[0][3]:
                    self._form_line = line
                self._check_carry()
                break
            try:
                self._token(str(kind), match.group(str(kind)), line)
            except EdnError as error:
                # A token at the very end may be half a token: ``1.5e``, ``\\u00``.
                error.ended = position == len(text) and kind not in ("open", "close")
                raise
            if top:
                yield self._form_line, top.pop()
        else:
            rest = _BLANK.match(text, position)
            if rest is not None and rest.end() != len(text):
                left = text[rest.end() :]
                raise EdnError(f"cannot read {left[:20]!r}", line, ended=left in _HALF_TOKENS)

    def end(self) -> None:
        """Raises EdnError if the text ended inside a form."""
        if self._carry or len(self._stack) > 1 or self._stack[0][3] or self._outer:
            raise EdnError(
                "the text ends inside a form that began here", self._form_line, ended=True
            )

    def _check_carry(self) -> None:
        if self._carry_length > EDN_STRING_BYTES_MAX:
            raise EdnError(
                f"a string that begins here has no end within {EDN_STRING_BYTES_MAX} characters",
                self._carry_line,
            )

    def _token(self, kind: str, text: str, line: int) -> None:
        if kind == "comment":
            return
        stack = self._stack
        if len(stack) == 1 and not stack[0][3]:
            self._form_line = line
            if not self._started:
                self._started = True
                if self._through_vector and text in ("[", "(") and kind == "open":
                    self._outer = _CLOSE[text]
                    return
        if kind == "open":
            if len(stack) > EDN_DEPTH_MAX:
                raise EdnError(f"nested deeper than {EDN_DEPTH_MAX} levels", line)
            stack.append((_CLOSE[text], text, [], []))
        elif kind == "close":
            self._close(text, line)
        elif kind == "tag":
            stack[-1][3].append(text)
        elif kind == "discard":
            stack[-1][3].append(_DISCARD)
        else:
            self._put(_atom(kind, text, line))

    def _close(self, text: str, line: int) -> None:
        if len(self._stack) == 1:
            if text == self._outer:
                self._outer = None
                return
            raise EdnError(f"{text!r} closes nothing", line)
        close, opened, items, prefixes = self._stack.pop()
        if text != close:
            raise EdnError(f"{text!r} where {close!r} should close {opened!r}", line)
        if prefixes:
            raise EdnError(f"a tag or #_ without a value before {text!r}", line)
        if opened == "{":
            self._put(_mapping(items, line))
        else:
            self._put(EdnSet(items) if opened == "#{" else items)

    def _put(self, value: Any) -> None:
        _, _, items, prefixes = self._stack[-1]
        while prefixes:
            prefix = prefixes.pop()
            if prefix is _DISCARD:
                return
            value = self._tag(prefix, value)
        items.append(value)


def _mapping(items: list[Any], line: int) -> dict[Any, Any]:
    if len(items) % 2:
        raise EdnError("a map with a key that has no value", line)
    keys, values = items[::2], items[1::2]
    try:
        found = dict(zip(keys, values, strict=True))
    except TypeError:
        found = dict(zip(map(freeze, keys), values, strict=True))
    if len(found) != len(keys):
        raise EdnError("a map with the same key twice", line)
    return found


def freeze(value: Any) -> Any:
    """``value`` as something hashable (lists become tuples), for use as a key of a map."""
    if isinstance(value, list):
        return tuple(freeze(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, freeze(item)) for key, item in value.items())
    return value


def _atom(kind: str, text: str, line: int) -> Any:
    if kind == "keyword":
        return Keyword(text)
    if kind == "number":
        return _number(text, line)
    if kind == "string":
        return _unescape(text, line) if "\\" in text else text
    if kind == "symbol":
        return _WORDS.get(text, text)
    if kind == "char":
        return _character(text, line)
    if text not in _SPECIAL:
        raise EdnError(f"unknown word {text!r}", line)
    return _SPECIAL[text]


def _number(text: str, line: int) -> int | float:
    try:
        if _INTEGER.fullmatch(text):
            return int(text.rstrip("N"))
        if _FLOAT.fullmatch(text):
            return float(text.rstrip("M"))
    except ValueError as error:
        raise EdnError(f"number {text[:20]!r}: {error}", line) from error
    raise EdnError(f"{text[:40]!r} is not an EDN number", line)


def _character(text: str, line: int) -> str:
    if len(text) == 1:
        return text
    if text in _CHARS:
        return _CHARS[text]
    if re.fullmatch(r"u[0-9a-fA-F]{4}", text):
        return _unescape("\\" + text, line)
    raise EdnError(f"unknown character \\{text[:20]}", line)


def _unescape(text: str, line: int) -> str:
    def one(match: re.Match[str]) -> str:
        word = match.group(1)
        if word[0] == "u" and len(word) == 5:
            return chr(int(word[1:], 16))
        if word not in _ESCAPES:
            raise EdnError(f"unknown escape \\{word} in a string", line)
        return _ESCAPES[word]

    found = _ESCAPE.sub(one, text)
    try:
        # Two escaped halves of a character outside the basic plane become that character.
        return found.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise EdnError("half of a surrogate pair in a string", line) from None


def load_all(lines: Iterable[str], *, tag: TagFunction = drop_tag) -> Iterator[Any]:
    """All top-level forms of a text given as lines."""
    reader = Reader(tag=tag)
    for number, line in enumerate(lines, 1):
        for _, value in reader.feed(line, number):
            yield value
    reader.end()


def loads(text: str, *, tag: TagFunction = drop_tag) -> Any:
    """The one form in ``text``; EdnError if there is none or more than one."""
    found = list(load_all(io.StringIO(text, newline="\n"), tag=tag))
    if len(found) != 1:
        raise EdnError(f"{len(found)} forms where one was expected", 1)
    return found[0]


_KEYWORD = re.compile(r"[A-Za-z][A-Za-z0-9_*!?.\-]*")
_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f\x85\u2028\u2029]')
_WRITE_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def keyword_like(text: str) -> bool:
    """True if ``text`` can be written as a keyword and read back as the same."""
    return _KEYWORD.fullmatch(text) is not None


def _escape(match: re.Match[str]) -> str:
    found = match.group()
    return _WRITE_ESCAPES.get(found) or f"\\u{ord(found):04x}"


def dumps(value: Any) -> str:
    """``value`` as EDN on one line.  Raises TypeError for what EDN has no form for."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Keyword):
        return f":{value!s}"
    if isinstance(value, str):
        return f'"{_UNSAFE.sub(_escape, value)}"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(k)} {dumps(v)}" for k, v in value.items()) + "}"
    if isinstance(value, EdnSet | set | frozenset):
        return "#{" + " ".join(map(dumps, value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(dumps, value)) + "]"
    raise TypeError(f"no EDN form for {type(value).__name__} {value!r}")


def _float(value: float) -> str:
    if value != value:
        return "##NaN"
    if value in (float("inf"), float("-inf")):
        return "##Inf" if value > 0 else "##-Inf"
    return repr(value)
