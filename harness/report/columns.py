"""Columns of numbers as text that a page can hold: planes of bytes, gzip, base64.

    block = pack({"start": delta(times), "row": bytes_of(rows)})
    block.text      # for <script type="application/octet-stream">
    block.layout    # [{"name": "start", "bytes": 4, "count": 3}, ...], read by assets/columns.js

A million operations must fit into a few megabytes, so a column of 32-bit numbers is stored as four
planes (all low bytes, then all next ...): the high planes are nearly constant and vanish in gzip.
Sorted times are stored as differences.

Trap: 32 bits of microseconds are 71 minutes; ``unit_ns`` picks a coarser unit for longer runs.
"""

from __future__ import annotations

import base64
import gzip
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

_LIMIT = (1 << 32) - 1
_LEVEL = 6  # 9 takes four times as long for one percent


class Block(msgspec.Struct, frozen=True):
    """Packed columns.  layout: name, bytes per number (1, 2 or 4) and count of each, in order."""

    text: str
    layout: list[dict[str, int | str]]


def unit_ns(end_ns: int) -> int:
    """The unit in which times up to ``end_ns`` fit into 32 bits: 1 ns for tiny histories, else us
    or a multiple of ten."""
    unit = 1 if end_ns < 10_000_000 else 1_000
    while end_ns // unit > _LIMIT:
        unit *= 10
    return unit


def words(values: Iterable[int]) -> array[int]:
    """Numbers of 32 bits; larger ones become the largest."""
    return array("I", [_LIMIT if value > _LIMIT else value for value in values])


def delta(values: Sequence[int]) -> array[int]:
    """A sorted column as differences, the first from 0."""
    if not values:
        return array("I")
    return words([values[0], *(b - a for a, b in pairwise(values))])


def small(values: Iterable[int]) -> array[int]:
    """Numbers of 8 bits."""
    return array("B", values)


def short(values: Iterable[int]) -> array[int]:
    """Numbers of 16 bits."""
    return array("H", values)


def pack(columns: Mapping[str, array[int]]) -> Block:
    """The block of some columns."""
    parts: list[bytes] = []
    layout: list[dict[str, int | str]] = []
    for name, column in columns.items():
        layout.append({"name": name, "bytes": column.itemsize, "count": len(column)})
        if sys.byteorder == "big":
            column = array(column.typecode, column)
            column.byteswap()
        raw = column.tobytes()
        parts += [raw[plane :: column.itemsize] for plane in range(column.itemsize)]
    return Block(squeeze(b"".join(parts)), layout)


def squeeze(data: bytes) -> str:
    """gzip, then base64; the same data gives the same text."""
    return base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode()
