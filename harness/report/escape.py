r"""Making foreign strings harmless before they are shown: control characters, markup, secrets.

    clean("\x1b[2J") == r"\x1b[2J"          # the four characters, not the escape
    mask("redis://:hunter2@127.0.0.1") == "redis://:***@127.0.0.1"

Traps: right-to-left overrides make a line read as something it is not, so they are shown as
escapes too.  Masking errs on the side of hiding: a fencing ``token=7`` stays, a ``secret=7`` goes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

MASK = "***"

# C0, DEL, C1, line and paragraph separators, direction marks and overrides, zero-width, tags,
# BOM, surrogates and non-characters: none belongs on one line of a report.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\ufff9-\uffff\U000e0000-\U000e0fff]"
)

# "pass" alone only as a word of its own: "bypass=3" is a figure.
_WORDS = (
    r"password|passwd|passphrase|(?<![a-z])pass(?![a-z])|pwd|secret|api[_-]?key|access[_-]?key"
    r"|credentials?|private[_-]?key|requirepass|masterauth"
)
_NAME = rf"[\w\-]*(?:{_WORDS})[\w\-]*"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    # scheme://user:secret@host; the user may be missing.
    (re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@\"']*):[^\s/@\"']+@"), rf"\1:{MASK}@"),
    # "password": "x" in JSON, 'password': 'x' in the repr of a dict.
    (re.compile(rf"([\"']{_NAME}[\"']\s*:\s*)(?:{_QUOTED})", re.IGNORECASE), rf'\1"{MASK}"'),
    # password=x, DB_PASSWORD="x y", password: x.
    (
        re.compile(
            rf"(\b{_NAME}\s*=\s*|\b(?:{_WORDS})\s*:\s*)(?:{_QUOTED}|[^\s\"',;&)\]}}]+)",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
    # --password x, and redis.conf's requirepass x.
    (
        re.compile(rf"(--{_NAME}\s+|\b(?:requirepass|masterauth)\s+)\S+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    (re.compile(r"(\bauthorization\s*:\s*(?:basic|bearer)\s+)\S+", re.IGNORECASE), rf"\1{MASK}"),
)
_SECRET_OPTION = re.compile(rf"--?{_NAME}", re.IGNORECASE)
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)


def clean(text: str) -> str:
    r"""``text`` on one line, with each character that could act on a terminal as ``\x1b``."""
    return _CONTROL.sub(_visible, text)


def clean_lines(text: str) -> list[str]:
    """The lines of ``text``, each cleaned (for pictures)."""
    return [clean(line) for line in text.split("\n")]


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(match.group())
    if named:
        return named
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def mask(text: str) -> str:
    """``text`` with what looks like a secret replaced by three stars.

    Half surrogate pairs (bytes of a log that were no UTF-8) become escapes: no file can hold them.
    """
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text.encode("utf-8", "backslashreplace").decode()


def mask_argv(argv: Sequence[str]) -> list[str]:
    """A command line with the values of options such as ``--password`` masked."""
    found: list[str] = []
    hide = False
    for word in argv:
        found.append(MASK if hide else mask(word))
        hide = not hide and _SECRET_OPTION.fullmatch(word) is not None
    return found


def mask_all(value: Any) -> Any:
    """JSON-like data with every string masked, and every value under a secret's name."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {
            mask_all(key): MASK if _is_secret(key, item) else mask_all(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_all(item) for item in value]
    return value


def _is_secret(name: Any, value: Any) -> bool:
    is_text = isinstance(name, str) and isinstance(value, str) and value != ""
    return is_text and _SECRET_NAME.fullmatch(name) is not None


def safe(text: object) -> str:
    """One line, harmless and without secrets: what reports print of anything foreign."""
    return clean(mask(str(text)))


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~@$&:-])")


def markdown(text: object) -> str:
    """``safe`` text in which nothing is markup for GitHub or GitLab (mentions, links, HTML)."""
    return _MARKDOWN.sub(_entity, safe(text))


def _entity(match: re.Match[str]) -> str:
    # Entities and not backslashes: "\@name" would still be a mention, "\|" differs by renderer.
    return f"&#{ord(match.group())};"
