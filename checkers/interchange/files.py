"""Opening files: gzip or not, line by line, with the end of the file looked at closely.

A run that was killed leaves a last line without its newline, and a gzip stream without its
trailer.  Both are the normal end of a crashed run, not a broken file: the lines before are good
and ``Lines.torn`` says that something is missing.

    lines = Lines(Path("history.jsonl.gz"))
    for number, line in lines: ...
    lines.torn, lines.last_has_newline

Traps: gzip is found by its magic bytes, not by the suffix; a byte order mark is dropped.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from harness.core.errors import UserError

GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
JEPSEN_MAGIC = b"JEPSEN"
_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 4096


def open_read(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Opens ``path`` for reading bytes, unpacking gzip; UserError if it cannot be opened."""
    try:
        raw = path.open("rb")
        magic = raw.read(len(GZIP_MAGIC))
        raw.seek(0)
    except OSError as error:
        raise UserError(
            f"cannot read {str(path)!r}: {error.strerror or error}; give the path of a history file"
        ) from error
    if magic == GZIP_MAGIC:
        raw.close()
        return gzip.open(path, "rb")
    return raw


def open_write(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Opens ``path`` for writing bytes, packing if it ends in ``.gz``; UserError if it cannot."""
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "wb", compresslevel=6)
        return path.open("wb")
    except OSError as error:
        raise UserError(
            f"cannot write {str(path)!r}: {error.strerror or error}; choose a path that can be "
            "written"
        ) from error


def head(path: Path) -> bytes:
    """The first bytes of a file (unpacked), to tell its format by."""
    with open_read(path) as file:
        try:
            return file.read(_HEAD_BYTES).removeprefix(_BOM)
        except (EOFError, OSError, zlib.error):
            return b""


class Lines:
    """The lines of a file with their numbers from 1, newline stripped.

    After the iteration ``torn`` says whether a gzip stream ended early, ``last_has_newline``
    whether the last line was complete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False
        self.last_has_newline = True

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        number = 0
        # "\n" alone ends a line; a "\r" before it is white space to both JSON and EDN.
        with open_read(self.path) as file:
            try:
                for number, line in enumerate(file, 1):
                    if number == 1:
                        line = line.removeprefix(_BOM)
                    if line.endswith(b"\n"):
                        yield number, line
                    else:
                        self.last_has_newline = False
                        yield number, line
            except EOFError:
                self.torn = True
                self.last_has_newline = False
            except (OSError, zlib.error) as error:
                raise UserError(
                    f"cannot read {str(self.path)!r} after line {number}: {error}; the file is "
                    "damaged, copy it again"
                ) from error
