"""The online monitors keep what is open and no more, and what they forget changes no verdict."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from checkers.fuzz import answers, disagree, shrink, targets
from checkers.fuzz_draw import intervals_of
from checkers.generate import generate
from checkers.long import STREAMED
from checkers.online import Online
from checkers.online_keys import Line, Value
from checkers.stream import Lines, check_stream
from harness.core.history import NEMESIS
from harness.core.result import Valid
from tests.checkers.histories import no_deadline

TTL_NS = 60_000_000
ONLINE = sorted(name for name, target in targets().items() if target.online in STREAMED)
LIMITS = {
    "checkers.online_locks.HOLDS_UNSURE_MAX": 1,
    "checkers.online_judge.HOLDS_UNSURE_MAX": 1,
    "checkers.online_judge.HOLDS_OVER_MAX": 0,
    "checkers.online_judge._OWNERS_MAX": 0,
    "checkers.online_judge.QUEUE_MAX": 1,
    "checkers.online_locks.QUEUE_MAX": 1,
    "checkers.online_wait._SHARES_MAX": 1,
}
WIDTHS = (  # of what is bounded per key
    "checkers.online.PROCESSES_MAX",
    "checkers.online_wait.PROCESSES_MAX",
    "checkers.online_keys.RECENT_MAX",
    "checkers.online_keys.MARKS_MAX",
    "checkers.online_keys.GAPS_MAX",
    "checkers.online_says.ANOMALIES_MAX",
    "checkers.online.COUNTED_AT_ONCE",
)


def kept(online: Online) -> int:
    """How many objects the monitors hold on to, however they are held: all that can be reached."""
    seen: set[int] = set()
    todo: list[Any] = [online]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | Enum) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        elif not isinstance(one, str | bytes | int | float | None):
            todo += _parts(one)
    return len(seen)


def _parts(one: Any) -> list[Any]:
    if isinstance(one, msgspec.Struct):
        return [getattr(one, name) for name in one.__struct_fields__]
    slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
    if isinstance(one, Iterator) or not (slots or hasattr(one, "__dict__")):
        return list(one)
    return [getattr(one, name) for name in slots] + list(getattr(one, "__dict__", {}).values())


def most_kept(batches: Iterator[list[Line]], ttl_ns: int | None = None) -> tuple[int, int]:
    """(most objects that were kept in the second quarter, and in the last) of 64 batches."""
    online = Online(ttl_ns=ttl_ns)
    early: list[int] = []
    late: list[int] = []
    for number, batch in enumerate(batches):
        assert batch
        online.feed(batch)
        if number % 2 and number // 16 in (1, 3):
            (early if number < 32 else late).append(kept(online))
    return max(early), max(late)


def batches_of(path: Path) -> Iterator[list[Line]]:
    lines = [line for batch in Lines(path) for line in batch]
    size = len(lines) // 64
    return iter([lines[i * size : (i + 1) * size] for i in range(64)])


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a short history reaches."""
    for name in (*LIMITS, *WIDTHS):
        monkeypatch.setattr(name, 16)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize("info", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("ttl_ns", [None, TTL_NS])
def test_what_is_kept_does_not_grow(tmp_path: Path, info: float, ttl_ns: int | None) -> None:
    path = tmp_path / "h.jsonl"
    generate(path, operations=8_000, seed=1, keys=4, info=info, ttl_ns=ttl_ns)
    early, late = most_kept(batches_of(path), ttl_ns)
    assert late < 1.4 * early, (early, late)  # a leak would double it


class Pen:
    """Writes lines: one operation after the other, a unit of time from event to event."""

    def __init__(self) -> None:
        self.index = self.now = 0

    def op(self, process: int, f: str, hold: Any, kind: str = "ok", **fields: Any) -> list[Line]:
        error = fields.pop("error", None)
        name = {"owner": hold} if fields.pop("owner", False) else {"hold": hold}
        kinds: list[Any] = ["invoke", kind]
        found = []
        for what in kinds:
            value = Value(**name, **(fields if what == "ok" else {}))
            found.append(Line(self.index, self.now, process, what, f, "k", value, error))
            self.index += 1
            self.now += 1_000_000
        return found


def leader(pen: Pen, number: int) -> list[Line]:
    """One hold that is renewed for ever."""
    if not number:
        return pen.op(0, "acquire", "h", token=1)
    return pen.op(0, "renew", "h")


def forsaken(pen: Pen, number: int) -> list[Line]:
    """Attempts of unknown outcome after which nobody cleans up."""
    return pen.op(number, "acquire", f"h{number}", "info")


def unsure(pen: Pen, number: int) -> list[Line]:
    """Releases of unknown outcome, and nobody asks again."""
    acquire = pen.op(number, "acquire", f"h{number}", token=number)
    return acquire + pen.op(number, "release", f"h{number}", "info")


def lapsing(pen: Pen, number: int) -> list[Line]:
    """Every hold runs out and is taken over, one after the other."""
    pen.now += 2 * TTL_NS
    return pen.op(number % 3, "acquire", f"h{number}", token=number)


def doubled(pen: Pen, number: int) -> list[Line]:
    """A lock that everybody gets and nobody gives back."""
    return pen.op(number % 3, "acquire", f"h{number}", token=number)


def told(pen: Pen, number: int) -> list[Line]:
    """Every holder hears from its release that it does not hold."""
    acquire = pen.op(number % 3, "acquire", f"h{number}", token=number)
    return acquire + pen.op(number % 3, "release", f"h{number}", "fail", error="not-held")


def confirmed(pen: Pen, number: int) -> list[Line]:
    """Grants of unknown outcome whose releases are confirmed, and no other grants."""
    acquire = pen.op(2 * number, "acquire", f"h{number}", "info")
    return acquire + pen.op(2 * number + 1, "release", f"h{number}")


def owned(pen: Pen, number: int) -> list[Line]:
    """Owners instead of hold ids, each with processes of its own."""
    acquire = pen.op(number, "acquire", f"o{number}", token=number, owner=True)
    return acquire + pen.op(number, "release", f"o{number}", owner=True)


def bare(pen: Pen, number: int) -> list[Line]:
    """Grants without tokens, and only those."""
    acquire = pen.op(number % 3, "acquire", f"h{number}")
    return acquire + pen.op(number % 3, "release", f"h{number}")


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize(
    "client", [leader, forsaken, unsure, lapsing, doubled, told, confirmed, owned, bare]
)
def test_odd_clients_do_not_make_it_grow(
    client: Callable[[Pen, int], list[Line]],
) -> None:
    pen = Pen()
    events = (event for number in range(4_000) for event in client(pen, number))
    batches = (list(islice(events, 100)) for _ in range(64))
    early, late = most_kept(batches, TTL_NS if client in (lapsing, leader) else None)
    assert late < 1.2 * early, (early, late)


@pytest.mark.parametrize("name", ONLINE)
@settings(no_deadline, max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_forgetting_changes_no_verdict(name: str, seed: int) -> None:
    """With next to no memory the online forms say less, but nothing else than oracle and engine."""
    target = targets()[name]
    acts = target.draw(random.Random(seed))
    with pytest.MonkeyPatch.context() as patch:
        for limit, low in LIMITS.items():
            patch.setattr(limit, low)
        found = answers(target, intervals_of(acts))
        assert not disagree(found), (found, shrink(target, acts))
    event(f"online: {found['online']}")


@pytest.mark.parametrize("info", [0.02, 0.2])
def test_what_was_forgotten_is_read_again(
    tmp_path: Path, info: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.jsonl"
    generate(path, operations=3_000, seed=4, info=info)
    whole = check_stream(path)
    for limit, low in LIMITS.items():
        monkeypatch.setattr(limit, low)
    for name, verdict in check_stream(path).items():
        assert verdict.valid is whole[name].valid is Valid.TRUE, verdict.why
        if name == "fairness":
            assert verdict.stats["jain"] == whole[name].stats["jain"]


def test_a_signal_of_loss_for_a_forgotten_hold_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("checkers.online_judge.HOLDS_UNSURE_MAX", 1)
    pen, online = Pen(), Online()
    for number in range(4):
        online.feed(pen.op(number, "acquire", f"h{number}", token=number))
    assert "h0" not in online.ended
    assert not online.aside
    value = Value(hold="h0")
    online.feed([Line(pen.index, pen.now, NEMESIS, "info", "lost", "k", value)])
    assert "k" in online.aside


def test_a_refused_renew_ends_the_belief_in_a_hold_that_lapsed() -> None:
    """Process 0 takes the lock again and again; then its old hold is told that it is gone."""
    pen, online = Pen(), Online(ttl_ns=10_000_000)
    online.feed(pen.op(0, "acquire", "a", token=1, ttl_ns=100_000_000))
    for number, hold in enumerate("bcd", 2):
        online.feed(pen.op(0, "acquire", hold, token=number))
        online.feed(pen.op(0, "release", hold))
    assert "a" in online.ended
    online.feed(pen.op(0, "renew", "a", "fail", error="not-held"))
    online.feed(pen.op(1, "acquire", "e", token=5))
    online.feed(pen.op(1, "release", "e"))
    assert online.finish()["belief"].count == 0
