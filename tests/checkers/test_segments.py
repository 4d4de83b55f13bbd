"""Piece by piece is the same as all at once: cuts, and what is carried over them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.fuzz import targets
from checkers.fuzz_draw import DRAWS, Act, ops_of
from checkers.long import SEGMENTED, judge_long
from checkers.properties import Settings
from checkers.segments import Segments, check_segments
from checkers.stream import Lines
from harness.core.errors import UserError
from harness.core.history import Op, pair
from harness.core.result import Valid

TARGETS = targets()


def lines(ops: list[Op]) -> list[bytes]:
    return [msgspec.json.encode(op) for op in ops]


def joined(model: str, rng: random.Random, count: int) -> list[Op]:
    """Several drawn histories one after the other on one key; all names are new in each."""
    ops: list[Op] = []
    for part in range(count):
        acts: list[Act] = DRAWS[model](rng)
        start = ops[-1].time + 1 if ops else 0
        for op in ops_of(acts):
            value: Any = op.value
            if isinstance(value, dict):
                value = {
                    n: f"{part}-{v}" if n in ("hold", "owner") else v for n, v in value.items()
                }
            process = f"{part}-{op.process}"
            ops.append(Op(len(ops), start + op.time, process, op.type, op.f, "k", value, op.error))
    return ops


@pytest.mark.parametrize("model", SEGMENTED)
def test_pieces_say_what_the_whole_says(model: str) -> None:
    options = TARGETS[model].options
    verdicts = []
    for seed in range(150):
        ops = joined(model, random.Random(f"{model}/{seed}"), 1 + seed % 4)
        whole = TARGETS[model].monitor(pair(ops))
        found = check_segments(lines(ops), model, piece=1 + seed % 5, **options)
        if found.keys and whole.exact and found.exact:
            assert found.valid is whole.valid, seed
            verdicts.append(found.valid)
        elif found.valid is not Valid.UNKNOWN:
            assert found.valid is Valid.FALSE or not whole.count, seed
    assert verdicts.count(Valid.TRUE) > 5
    assert verdicts.count(Valid.FALSE) > 5


def many(model: str, rounds: int, *, broken: bool = False) -> list[Op]:
    """A long legal history; a client always holds, so that something is carried over each cut."""
    ops: list[Op] = []

    def act(process: int, f: str, value: Any, answer: Any = None, kind: str = "ok") -> None:
        for stage, said in (("invoke", value), (kind, value if answer is None else answer)):
            ops.append(Op(len(ops), len(ops), process, stage, f, "k", said))

    taker = {"reentrant": {"owner": "w"}, "rwlock": {"mode": "read"}}.get(model, {})
    for number in range(rounds):
        if model == "cas":
            act(0, "write", number + 1)
            act(1, "read", None, number + 1)
            continue
        process = 0 if model == "reentrant" else number
        act(process, "acquire", {**taker, "hold": f"h{number}"})
        if number % 50 == 25:
            lost = {**taker, "hold": f"u{number}"}
            if model == "reentrant":
                lost["owner"] = f"o{number}"
            act(10_000 + number, "acquire", lost, kind="info")
        if number:
            before = 0 if model == "reentrant" else number - 1
            act(before, "release", {**taker, "hold": f"h{number - 1}"})
    if broken:
        worse = {"semaphore": {}, "rwlock": {"mode": "write"}, "reentrant": {"owner": "x"}}
        if model == "cas":
            act(2, "read", None, rounds - 1)
        else:
            act(9_999, "acquire", {**worse[model], "hold": "x"})
            act(9_998, "acquire", {**worse[model], "hold": "y"})
    return ops


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("model", SEGMENTED)
def test_long_histories_in_little_memory(model: str, broken: bool) -> None:
    options = {"k": 2} if model == "semaphore" else {}
    ops = many(model, 3_000, broken=broken)
    run = Segments(model, TARGETS[model].monitor, initial=None, piece=64)
    most = 0
    for place in range(0, len(ops), 50):
        run.feed(ops[place : place + 50])
        most = max(most, *(len(piece.ops) for piece in run.pieces.values()))
    assert most < 200
    assert not run.aside
    for verdict in (run.finish(), check_segments(lines(ops), model, **options)):
        assert verdict.valid is (Valid.FALSE if broken else Valid.TRUE)
        if broken:
            assert max(verdict.ops) >= len(ops) - 4


def test_a_long_file_is_judged_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"\n".join(lines(many("rwlock", 200, broken=True))) + b"\n")
    result = judge_long(path, "rwlock", Settings(), explain=True)
    assert result is not None
    assert result.valid is Valid.FALSE
    assert result.stats["decided_by"] == "online monitor"
    assert result.anomalies[0].picture


def test_without_a_place_for_a_cut_the_file_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.segments.PIECE_MAX", 100)
    ops = many("semaphore", 300)
    ops.insert(0, Op(0, 0, 77, "invoke", "release", "k", {"hold": "z"}))  # never ends
    for index, op in enumerate(ops):
        op.index = index
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"\n".join(lines(ops)) + b"\n")
    verdict = check_segments(path, "semaphore", k=2)
    assert verdict.stats["read_again"] == 1
    assert verdict.valid is Valid.TRUE
    assert check_segments(lines(ops), "semaphore", k=2).valid is Valid.UNKNOWN


def test_refusals() -> None:
    with pytest.raises(UserError, match="permits"):
        check_segments([], "semaphore")
    late = [Op(0, 5, 0, "invoke", "read"), Op(1, 4, 1, "invoke", "read")]
    with pytest.raises(UserError, match="time must"):
        check_segments(lines(late), "cas")
    with pytest.raises(UserError, match="no pending invoke"):
        check_segments(lines([Op(0, 5, 0, "ok", "read")]), "cas")
    assert check_segments([], "cas").valid is Valid.UNKNOWN


def test_lines_of_full_events() -> None:
    batch = next(iter(Lines([b'{"index":0,"time":1,"process":0,"type":"ok","f":"x"}'], Op)))
    assert batch[0].f == "x"
