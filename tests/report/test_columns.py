"""Packed columns say the same after unpacking; what a page can't hold is refused or coarser."""

from __future__ import annotations

import base64
import gzip
import random

import pytest

from harness.report import columns
from harness.report.templating import base64_text


def unpack(block: columns.Block) -> dict[str, list[int]]:
    raw = gzip.decompress(base64.b64decode(block.text))
    found, at = {}, 0
    for column in block.layout:
        size, count = int(column["bytes"]), int(column["count"])
        planes = [raw[at + p * count : at + (p + 1) * count] for p in range(size)]
        found[str(column["name"])] = [
            sum(planes[p][i] << (8 * p) for p in range(size)) for i in range(count)
        ]
        at += size * count
    assert at == len(raw)
    return found


def test_columns_come_back_as_they_were() -> None:
    rng = random.Random(1)
    times = sorted(rng.randrange(1 << 32) for _ in range(500))
    block = columns.pack(
        {
            "time": columns.delta(times),
            "row": columns.small(range(200)),
            "key": columns.short([0, 1, 65535]),
            "none": columns.words([]),
        }
    )
    found = unpack(block)
    sums, total = [], 0
    for step in found["time"]:
        total += step
        sums.append(total)
    assert sums == times
    assert found["row"] == list(range(200))
    assert found["key"] == [0, 1, 65535]
    assert found["none"] == []


def test_the_same_data_gives_the_same_text() -> None:
    assert columns.squeeze(b"lock") == columns.squeeze(b"lock")


@pytest.mark.parametrize(
    ("end_ns", "unit"), [(0, 1), (9_999_999, 1), (10**9, 1000), (6 * 3600 * 10**9, 10_000)]
)
def test_the_unit_grows_with_the_run(end_ns: int, unit: int) -> None:
    assert columns.unit_ns(end_ns) == unit
    assert end_ns // unit < 1 << 32


def test_numbers_that_are_too_large_stay_the_largest() -> None:
    assert list(columns.words([1 << 40, 5])) == [(1 << 32) - 1, 5]


@pytest.mark.parametrize("text", ["a<b", "</script>", "a&b", "é", "a'b"])
def test_a_data_block_takes_base64_only(text: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        base64_text(text)
