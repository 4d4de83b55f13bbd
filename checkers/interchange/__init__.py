"""Histories from files and into files: JSON lines, Jepsen's EDN, Parquet, Porcupine's viewer.

    history = read_history("store/latest/history.edn.gz")
    write_history(history, "history.parquet")

The format is told by the suffix and, where that says nothing, by the first bytes.  Everything that
is text may be packed with gzip.  Whatever is malformed is named by its line in one UserError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from checkers.interchange.files import JEPSEN_MAGIC, PARQUET_MAGIC, head
from checkers.interchange.jepsen import EdnReader, read_edn, read_json_array, write_edn
from checkers.interchange.jsonl import JsonlReader, read_jsonl, write_jsonl
from checkers.interchange.parquet import ParquetReader, read_parquet, write_parquet
from checkers.interchange.porcupine_view import porcupine_data, write_porcupine
from harness.core.errors import UserError
from harness.core.history import Header, History, Op

FORMATS = ("jsonl", "edn", "parquet", "json")
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".edn": "edn",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_FIRST_IN_DIRECTORY = ("history.jsonl", "history.jsonl.gz", "history.edn", "history.parquet")


class OpReader(Protocol):
    """Events one by one; header, torn and lines are complete when the iteration has ended."""

    header: Header
    torn: bool

    def __iter__(self) -> Iterator[Op]: ...


def locate(path: str | Path) -> Path:
    """The history file that ``path`` means: itself, or the one in a directory of a run."""
    found = Path(path)
    if found.is_dir():
        for name in _FIRST_IN_DIRECTORY:
            if (found / name).is_file():
                return found / name
        raise UserError(
            f"{str(found)!r} is a directory without {' or '.join(_FIRST_IN_DIRECTORY)}; give the "
            "path of a history file"
        )
    return found


def detect_format(path: Path) -> str:
    """One of FORMATS.  UserError if the file cannot be read or looks like none of them."""
    start = head(path).lstrip()  # also says clearly that a file is missing
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    if suffixes and suffixes[-1].lower() in _SUFFIXES:
        return _SUFFIXES[suffixes[-1].lower()]
    if start.startswith(JEPSEN_MAGIC):
        raise UserError(
            f"{str(path)!r} is Jepsen's binary test file; give the history.edn beside it"
        )
    if start.startswith(PARQUET_MAGIC):
        return "parquet"
    if re.match(rb"\[\s*(\{\s*\"|\])", start):
        return "json"
    if not start or re.match(rb"\{\s*\"", start):
        return "jsonl"
    if re.match(rb"[\[({#;]", start):
        return "edn"
    raise UserError(
        f"{str(path)!r} looks like none of {', '.join(FORMATS)} (it begins with {start[:20]!r}); "
        "say which with --format"
    )


def _format(path: Path, format: str) -> str:
    if format == "auto":
        return detect_format(path)
    if format not in FORMATS:
        raise UserError(f"format is {format!r}, must be auto or one of {', '.join(FORMATS)}")
    return format


def read_history(path: str | Path, *, format: str = "auto", independent: bool = False) -> History:
    """The history in a file, with header, ``torn`` and line numbers.

    format: auto or one of FORMATS.  independent: take values ``[k v]`` of Jepsen files apart into
    key and value.  UserError names the line, the field, the rule and the fix.
    """
    file = locate(path)
    kind = _format(file, format)
    if independent and kind not in ("edn", "json"):
        raise UserError(f"independent keys exist in Jepsen's histories only, {file.name} is {kind}")
    if kind == "jsonl":
        return read_jsonl(file)
    if kind == "parquet":
        return read_parquet(file)
    read = read_edn if kind == "edn" else read_json_array
    return read(file, independent=independent)


def open_reader(
    path: str | Path, *, format: str = "auto", independent: bool = False
) -> OpReader | None:
    """A reader that streams, or None for a format that is read at once (a JSON array)."""
    file = locate(path)
    kind = _format(file, format)
    if kind == "jsonl":
        return JsonlReader(file)
    if kind == "edn":
        return EdnReader(file, independent=independent)
    return ParquetReader(file) if kind == "parquet" else None


def write_history(history: History, path: str | Path, *, format: str = "auto") -> int:
    """Writes a history in the format of the suffix (.jsonl, .edn, .parquet); returns the number
    of events."""
    file = Path(path)
    suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
    kind = _SUFFIXES.get(suffixes[-1].lower() if suffixes else "") if format == "auto" else format
    if kind == "jsonl":
        return write_jsonl(history.ops, file, history.header)
    if kind == "edn":
        return write_edn(history.ops, file, history.header)
    if kind == "parquet":
        return write_parquet(history.ops, file, history.header, torn=history.torn)
    raise UserError(
        f"cannot tell the format from {file.name!r}; end it in .jsonl, .edn or .parquet"
    )


__all__ = [
    "FORMATS",
    "EdnReader",
    "JsonlReader",
    "OpReader",
    "ParquetReader",
    "detect_format",
    "locate",
    "open_reader",
    "porcupine_data",
    "read_edn",
    "read_history",
    "read_json_array",
    "read_jsonl",
    "read_parquet",
    "write_edn",
    "write_history",
    "write_jsonl",
    "write_parquet",
    "write_porcupine",
]
