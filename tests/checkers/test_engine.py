"""The general engine: same verdicts as the oracle, limits that end in UNKNOWN, useful witnesses."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.engine import check, frontier, wgl
from checkers.engine.budget import Budget
from checkers.engine.sample import SAMPLED, random_history, random_model
from checkers.engine.work import Work
from checkers.interchange.jsonl import read_jsonl
from checkers.models import make
from checkers.models.base import Model, determined
from checkers.models.register import Kv
from checkers.oracle import linearizable
from harness.core.history import Interval, Op, pair
from harness.core.result import Valid
from tests.checkers import sketch
from tests.checkers.examples import EXAMPLES, NAMES, Row, intervals, model_of

DATA = Path(__file__).parent.parent / "data"
FILES = sorted(DATA.glob("*.valid.jsonl")) + sorted(DATA.glob("*.invalid.jsonl"))


def by(strategy: Any, ops: list[Interval], model: Model) -> bool | None:
    """The verdict of one strategy alone, without limits; one object only."""
    budget = Budget(seconds=60, memory_bytes=1 << 34, nodes_max=1 << 40)
    verdict, _ = strategy.search(Work(ops, determined(model)), budget)
    return verdict if verdict is None else bool(verdict)


@pytest.mark.parametrize("row", EXAMPLES, ids=NAMES)
def test_examples(row: Row) -> None:
    ops, model = intervals(row), model_of(row)
    assert check(ops, model).valid == (Valid.TRUE if row[4] else Valid.FALSE)
    assert by(wgl, ops, model) == row[4]
    assert by(frontier, ops, model) == row[4]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_that_name_their_verdict(path: Path) -> None:
    history = read_jsonl(path)
    header = history.header
    name = path.name.split("-")[0]
    options = {"semaphore": {"k": header.k}, "lease": {"ttl_ns": header.ttl_ns}}.get(name, {})
    if name == "cas":
        options = {"initial": header.initial}
    valid = check(history.intervals(), make(name, **options)).valid
    assert valid == (Valid.FALSE if ".invalid." in path.name else Valid.TRUE)


def test_files_of_both_verdicts_exist() -> None:
    assert len(FILES) >= 15
    assert {".invalid." in path.name for path in FILES} == {True, False}


def test_anonymous_mutex_misses_a_double_grant() -> None:
    history = read_jsonl(DATA / "mutex-double-grant-jepsen-misses.invalid.jsonl")
    assert check(history.intervals(), make("jepsen-mutex")).valid == Valid.TRUE
    assert check(history.intervals(), make("mutex")).valid == Valid.FALSE


@pytest.mark.parametrize("name", SAMPLED)
def test_engine_agrees_with_oracle(name: str) -> None:
    """Random histories, valid and mutated; both strategies; both verdicts must turn up."""
    seen = {True: 0, False: 0}

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(st.randoms(use_true_random=False), st.integers(0, 2**32))
    def compare(rng: random.Random, seed: int) -> None:
        for one in (rng, *(random.Random(seed + n) for n in range(6))):
            model = random_model(name, one)
            ops = pair(random_history(model, one))
            want = linearizable(ops, model)
            seen[want] += 1
            assert by(wgl, ops, model) == want
            assert by(frontier, ops, model) == want
            assert check(ops, model).valid == (Valid.TRUE if want else Valid.FALSE)

    compare()
    assert min(seen.values()) >= 1, seen


class Dice(Model):
    """A roll adds 1 or 2, nobody says which; a read tells the sum."""

    name = "dice"
    init: Any = 0
    deterministic = False

    def step(self, state: Any, op: Interval) -> Iterable[Any]:
        if op.invoke.f == "roll":
            return (state + 1, state + 2)
        seen = op.complete.value if op.complete is not None else state
        return (state,) if state == seen else ()


@pytest.mark.parametrize(("total", "verdict"), [(1, False), (2, True), (4, True), (5, False)])
def test_non_deterministic_models_by_power_set(total: int, verdict: bool) -> None:
    ops = [
        *(Op(i, i, 0, "invoke" if i % 2 == 0 else "ok", "roll") for i in range(4)),
        Op(4, 4, 0, "invoke", "read"),
        Op(5, 5, 0, "ok", "read", None, total),
    ]
    assert linearizable(pair(ops), Dice()) == verdict
    assert check(pair(ops), Dice()).valid == (Valid.TRUE if verdict else Valid.FALSE)


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_non_deterministic_random(seed: int) -> None:
    rng = random.Random(seed)
    ops: list[Op] = []
    busy: dict[int, str] = {}
    for i in range(10):
        process = rng.randint(0, 2)
        if process in busy:
            kind = "info" if rng.random() < 0.2 else "ok"
            value = rng.randint(0, 5) if busy[process] == "read" else None
            ops.append(Op(i, i, process, kind, busy.pop(process), None, value))
        else:
            busy[process] = rng.choice(("roll", "roll", "read"))
            ops.append(Op(i, i, process, "invoke", busy[process]))
    want = linearizable(pair(ops), Dice())
    assert check(pair(ops), Dice()).valid == (Valid.TRUE if want else Valid.FALSE)


class Blind(Kv):
    """Strings, but without the foresight that makes the crowd below an easy question."""

    foresees = False


def crowd(count: int) -> list[Interval]:
    """A hard question: ``count`` concurrent appends and a read that saw none of the orders."""
    ops = [Op(i, i, i, "invoke", "append", "k", f"{i},") for i in range(count)]
    ops.append(Op(count, count, count, "invoke", "get", "k"))
    ops += [Op(count + 1 + i, count + 1 + i, i, "ok", "append", "k") for i in range(count)]
    end = 2 * count + 1
    ops.append(Op(end, end, count, "ok", "get", "k", "".join(f"{i};" for i in range(count))))
    return pair(ops)


def test_time_limit_is_unknown() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.01
        return now[0]

    result = check(crowd(12), Blind(), budget_s=0.5, clock=clock)
    assert result.valid == Valid.UNKNOWN
    assert result.strategy == "none"
    assert "limit of time" in result.why


def test_memory_limit_is_unknown() -> None:
    result = check(crowd(12), Blind(), memory_bytes=200_000)
    assert result.valid == Valid.UNKNOWN
    assert "limit of memory" in result.why


def test_memory_estimate_is_of_the_right_size() -> None:
    import tracemalloc

    tracemalloc.start()
    limit = 4_000_000
    check(crowd(12), Blind(), memory_bytes=limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert limit / 4 < peak < limit * 2


def test_hard_object_does_not_hide_a_violation_in_another() -> None:
    hard = crowd(14)
    ops = [Op(i, i, 99, "invoke" if i % 2 == 0 else "ok", "get", "z", "x") for i in range(2)]
    result = check([*hard, *pair(ops)], Blind(), budget_s=20)
    assert result.valid == Valid.FALSE
    assert result.key == "z"
    assert result.seconds < 10


def test_malformed_operation_is_not_judged() -> None:
    ops = [Op(0, 0, 0, "invoke", "write", "k", {"x": 1}), Op(1, 1, 0, "ok", "write", "k")]
    result = check(pair(ops), make("store"))
    assert result.valid == Valid.UNKNOWN
    assert "index 0" in result.why
    assert "token" in result.why


def test_nothing_at_all() -> None:
    assert check([], make("mutex")).valid == Valid.TRUE


def test_long_history_needs_no_recursion() -> None:
    ops: list[Op] = []
    for i in range(30_000):
        f = "acquire" if i % 2 == 0 else "release"
        value = {"hold": str(i // 2)}
        ops.append(Op(2 * i, 2 * i, 0, "invoke", f, "k", value))
        ops.append(Op(2 * i + 1, 2 * i + 1, 0, "ok", f, "k", value))
    result = check(pair(ops), make("mutex"))
    assert result.valid == Valid.TRUE
    assert result.strategy == "wgl"
    ops[-2].value = ops[-1].value = {"hold": "other"}
    result = check(pair(ops), make("mutex"))
    assert result.valid == Valid.FALSE
    assert result.witness is not None
    assert result.witness.blocked.complete is not None
    assert result.witness.blocked.complete.index == ops[-1].index


def test_witness_is_bounded_and_points_at_the_violation() -> None:
    history = sketch.history("A a 0-2; R a 7-8; A b 3-5; R b 9-10", key="k")
    result = check(history.intervals(), make("mutex"))
    assert result.witness is not None
    assert result.witness.blocked.call_ns == 3
    assert result.witness.returned == 1
    assert [op.call_ns for op in result.witness.prefix] == [0]
    assert result.key == "k"
    assert result.objects == 1
    assert result.configurations > 0


@pytest.mark.parametrize("unknown", [17, 170])
def test_unknown_outcomes_and_a_violation(unknown: int) -> None:
    """The case that a search without dominance cannot finish; see docs/benchmarks.md for times."""
    ops = double_grant_with_unknowns(1000, unknown)
    result = check(ops, make("mutex"))
    assert result.valid == Valid.FALSE
    assert result.seconds < 20  # the target is 1 s and 5 s; this only catches explosions


def double_grant_with_unknowns(count: int, unknown: int) -> list[Interval]:
    """5 clients; releases of unknown outcome along the way; a double grant at 90 %."""
    rng = random.Random(unknown)
    ops: list[Op] = []
    now, process, lost = 0, 0, set(rng.sample(range(10, count // 2 - 10), unknown))
    waiting: list[tuple[int, str]] = []

    def put(kind: str, who: int, f: str, hold: str) -> None:
        nonlocal now
        now += 1
        ops.append(Op(len(ops), now, who, kind, f, "k", {"hold": hold}))

    processes = list(range(5))
    for grant in range(count // 2):
        while len(waiting) < 4:
            process += 1
            slot = process % 5
            who = processes[slot]
            if any(w == who for w, _ in waiting):
                continue
            waiting.append((who, f"h{process}"))
            put("invoke", who, "acquire", f"h{process}")
        who, hold = waiting.pop(rng.randrange(len(waiting)))
        put("ok", who, "acquire", hold)
        if grant == count // 2 * 9 // 10:
            second, hers = waiting.pop()
            put("ok", second, "acquire", hers)  # the double grant
            put("invoke", second, "release", hers)
            put("ok", second, "release", hers)
        put("invoke", who, "release", hold)
        if grant in lost:
            put("info", who, "release", hold)
            processes[processes.index(who)] = 1000 + grant
        else:
            put("ok", who, "release", hold)
    return pair(ops)


def test_foresight_answers_the_crowd_at_once() -> None:
    result = check(crowd(12), make("kv"))
    assert result.valid == Valid.FALSE
    assert result.configurations < 100
    assert check(crowd(6), Blind()).valid == Valid.FALSE
