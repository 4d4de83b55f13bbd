"""``check_model``: known verdicts by every way of deciding, refusals, budgets, properties, keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import MODELS, check_model
from checkers.attach import draw
from checkers.models import make
from checkers.oracle import linearizable
from harness.core.errors import UserError
from harness.core.history import Header, History, Op
from harness.core.result import Anomaly, Result, Side, Valid
from tests.checkers.sketch import history

T, F, U = Valid.TRUE, Valid.FALSE, Valid.UNKNOWN

MUTEX = {
    "A a 0-2; R a 5-8; A b 1-7; R b 9-10": T,
    "A a 0-2; R a 7-8; A b 3-5; R b 9-10": F,
    "A a 0-2; R a 4-9; A b 3-6; R b 10-11": T,
    "A a 0-2; A b 3-5; R b 6-7": F,
    "A a 0-2; R a 4-*; A b 3-6; R b 7-8": T,
    "A a 0-2; R a 7-*; A b 3-6; R b 8-9": F,
    "A a 0-*; A b 2-4; R b 6-7": T,
    "A a 0-*; R a 3-9; A b 2-5; R b 7-8": T,
    "A a 0-*; R a 5-7; A b 2-4; R b 8-9": F,
    "A a 0-*; R a 4-8; A b 1-*; R b 5-7; A c 2-3; R c 6-9": T,
    "A a 0-2; R a 5-6 fail": F,
    "A a 0-2; R a 4-6; A b 1-4; R b 7-8": T,
}
REENTRANT = {
    "A a 0-1; A a 2-3; R a 4-5; A b 1-9; R a 6-7; R b 10-11": T,
    "A a 0-1; A a 2-3; R a 4-5; A b 3-6; R b 8-9; R a 10-11": F,
    "A a 0-1; A a 2-*; A b 1-6; R b 7-8": F,
    "A a 0-1; R a 2-3; R a 4-5": F,
}
SEMAPHORE = {
    "A a 0-1; A b 2-3; R a 6-7; R b 8-9": T,
    "A a 0-1; A b 2-3; A c 4-5; R a 6-7; R b 8-9; R c 10-11": F,
    "A a 0-1; A b 2-3; A c 1-*; R c 4-6; R a 7-8; R b 9-10": F,
}
RWLOCK = {
    "S a 0-1; S b 2-3; U a 4-5; U b 6-7": T,
    "S a 0-1; X b 2-3; U a 4-5; U b 6-7": F,
    "S a 0-1; U a 4-5; X w 2-*; U w 3-8; S b 5-7; U b 9-10": T,
}
FENCED = {
    "A a 0-2 t=1; R a 3-4; A b 5-6 t=2; R b 7-8": T,
    "A a 0-2 t=5; R a 3-4; A b 5-6 t=4; R b 7-8": F,
    "A a 0-7 t=2; R a 8-9; A b 1-3 t=1; R b 4-5": T,
    "A a 0-2 t=1; R a 7-8; A b 3-5 t=2; R b 9-10": F,
}
STORE = {
    "w a 0-1 t=1; w b 2-3 t=2; w a 4-5 fail t=1": T,
    "w a 0-1 t=1; w b 2-3 t=2; w a 4-5 t=1": F,
    "w b 0-4 t=2; w a 1-3 t=1": T,
    "w a 0-1 t=2; w b 2-3 fail t=2": F,
}
CAS = {
    "c a 0-3 v=0>1; c b 1-5 v=1>2; r c 4-6 v=2": T,
    "c a 0-3 v=0>1; c b 1-5 v=0>2": F,
    "w a 0-1 v=1; w b 2-3 v=2; r c 4-5 v=1": F,
    "c a 0-* v=0>1; c b 2-3 v=0>9 fail": T,
    "w a 0-1 v=5; w b 2-3 v=5; r c 4-5 v=0": F,
}
LEASE = {
    "A a 0-2; A b 8-13": T,
    "A a 0-2; A b 3-8": F,
    "A a 0-2; N a 7-8; A b 9-15": F,
    "A a 0-2; R a 5-6 fail": F,
    "A a 0-2; A b 10-12; R a 13-14 fail": T,
    "A a 0-2; R a 4-*; A b 3-6": T,
}
TTL_MS = 10 / 1_000_000  # ten ticks
CASES: list[tuple[str, dict[str, Any], str, Valid]] = [
    (model, options, text, valid)
    for model, options, table in [
        ("mutex", {}, MUTEX),
        ("reentrant", {}, REENTRANT),
        ("semaphore", {"k": 2}, SEMAPHORE),
        ("rwlock", {}, RWLOCK),
        ("fenced", {}, FENCED),
        ("store", {}, STORE),
        ("cas", {"initial": 0}, CAS),
        ("register", {"initial": 0}, CAS),
        ("lease", {"ttl_ms": TTL_MS}, LEASE),
    ]
    for text, valid in table.items()
]


@pytest.mark.parametrize("engine", ["auto", "wgl", "frontier"])
@pytest.mark.parametrize(("model", "options", "text", "valid"), CASES)
def test_known_verdicts(
    model: str, options: dict[str, Any], text: str, valid: Valid, engine: str
) -> None:
    found = check_model(history(text, holds=model != "reentrant"), model, engine=engine, **options)
    assert found.valid is valid
    assert found.checker == model
    assert found.stats["exact"] is True
    assert found.stats["why"]
    decided = str(found.stats["decided_by"])
    assert engine in decided if engine != "auto" else decided != "nobody"
    if valid is F:
        assert found.anomalies
        assert found.anomalies[0].ops
        assert found.anomalies[0].says
        indices = range(len(history(text).ops))
        assert set(found.anomalies[0].ops) <= set(indices)


def test_every_model_of_the_registry_is_offered() -> None:
    from checkers.api import MODEL_NAMES

    assert set(MODELS.names()) <= set(MODEL_NAMES)


# ------------------------------------------------------------------------------ who decides


def test_the_monitor_decides_where_it_can() -> None:
    found = check_model(history("A a 0-1; R a 2-3"), "mutex")
    assert found.stats["decided_by"] == "monitor"
    assert "operations on 1 key" in found.says


def test_the_engine_decides_where_an_assumption_fails() -> None:
    # No hold ids, and the owner goes on after an unknown outcome.
    text = "A a 0-1; R a 2-*; A a 3-4; R a 5-6; A b 7-8; R b 9-10"
    plain = history(text, holds=False)
    found = check_model(plain, "mutex")
    assert "general engine" in str(found.stats["decided_by"])
    assert found.stats["why"] != "all assumptions of the fast monitor hold"
    assert found.valid is T
    only = check_model(plain, "mutex", engine="monitor")
    assert only.valid is U
    assert "--engine auto" in only.stats["missing"]


def test_anonymous_mutex_of_jepsen_misses_what_ours_finds() -> None:
    # Two hold at once; the unknown release of a third that never held explains it away.
    text = "A a 0-1; R c 1-*; A b 3-4; R b 5-6; R a 7-8"
    assert check_model(history(text), "mutex").valid is F
    shown = "A a 0-1; R c 1-*; A b 3-4; R b 5-6"
    assert check_model(history(shown), "jepsen-mutex").valid is T
    assert check_model(history(shown), "mutex").valid is F


def test_no_monitor_for_a_model_is_said() -> None:
    with pytest.raises(UserError, match="no fast monitor"):
        check_model(history("A a 0-1; R a 2-3"), "jepsen-mutex", engine="monitor")
    found = check_model(history("A a 0-1; R a 2-3"), "jepsen-mutex")
    assert (found.valid, found.stats["exact"]) == (T, True)


def test_kv() -> None:
    ops = [
        Op(0, 0, 0, "invoke", "put", "x", "1"),
        Op(1, 1, 0, "ok", "put", "x", "1"),
        Op(2, 2, 1, "invoke", "get", "x"),
        Op(3, 3, 1, "ok", "get", "x", "2"),
    ]
    assert check_model(History(ops), "kv").valid is F
    ops[3] = Op(3, 3, 1, "ok", "get", "x", "1")
    assert check_model(History(ops), "kv").valid is T


# ------------------------------------------------------------------------------ unknown, vacuous


@pytest.mark.parametrize("model", ["mutex", "fenced", "cas", "kv", "store", "jepsen-mutex"])
def test_an_empty_history_is_never_true(model: str) -> None:
    found = check_model(History([]), model)
    assert found.valid is U
    assert found.stats["vacuous"] is True
    assert found.stats["missing"]


@pytest.mark.parametrize(
    "ops",
    [
        [Op(0, 0, 0, "invoke", "acquire"), Op(1, 1, 0, "fail", "acquire")],
        [Op(0, 0, 0, "invoke", "acquire"), Op(1, 1, 0, "info", "acquire")],
        [Op(0, 0, 0, "invoke", "read"), Op(1, 1, 0, "ok", "read", None, 1)],
        [Op(0, 0, "nemesis", "info", "pause")],
    ],
)
def test_nothing_that_was_answered_is_vacuous(ops: list[Op]) -> None:
    found = check_model(History(ops), "mutex")
    assert (found.valid, found.stats["vacuous"]) == (U, True)


def test_busy_answers_alone_are_a_nuisance_unless_judged() -> None:
    spurious = history("A a 0-1; R a 2-3; A b 4-5 fail; A c 6-7; R c 8-9")
    assert check_model(spurious, "mutex").valid is T
    for engine in ("auto", "wgl"):
        assert check_model(spurious, "mutex", judge_busy=True, engine=engine).valid is F
    right = history("A a 0-1; A b 2-3 fail; R a 4-5")
    assert check_model(right, "mutex", judge_busy=True).valid is T
    assert check_model(right, "semaphore", k=1).stats["decided_by"] == "monitor"


def test_out_of_budget_is_unknown_and_says_what_is_missing() -> None:
    # Every write of one value, so that no monitor applies, and no order is found at once.
    ops: list[Op] = []
    for i in range(40):
        ops.append(Op(len(ops), i, i, "invoke", "write", None, i % 2))
    for i in range(40):
        kind = "info" if i < 5 else "ok"
        ops.append(Op(len(ops), 100 + i, i, kind, "write", None, i % 2))
    ops += [Op(len(ops), 200, 99, "invoke", "read"), Op(len(ops) + 1, 201, 99, "ok", "read")]
    ops[-1].value = 7
    found = check_model(History(ops), "cas", budget_s=0.0, engine="wgl")
    assert found.valid is U
    assert "--budget-s" in found.stats["missing"]
    assert "5 of 41 operations have no known outcome" in found.stats["missing"]
    assert found.stats["decided_by"] == "nobody"


# ------------------------------------------------------------------------------ properties


def by_name(result: Result) -> dict[str, Valid]:
    return {part.checker: part.valid for part in result.sub}


def test_a_lease_is_judged_safe_and_exact() -> None:
    # A release is answered ok although the lease had run out and nobody took over: it lingered.
    found = check_model(history("A a 0-2; R a 20-21; A b 22-23"), "lease", ttl_ms=TTL_MS)
    assert by_name(found) == {"safe": T, "exact": F}
    assert found.valid is T  # safe decides
    both = check_model(history("A a 0-2; A b 3-8"), "lease", ttl_ms=TTL_MS)
    assert by_name(both) == {"safe": F, "exact": F}
    assert both.anomalies[0].side is Side.SERVICE


def test_takeover_at_exactly_the_ttl_is_legal() -> None:
    # Granted at 2 at the latest... the earliest end is 0 + 10.
    assert check_model(history("A a 0-0; A b 1-10"), "lease", ttl_ms=TTL_MS).valid is T
    assert check_model(history("A a 0-0; A b 1-9"), "lease", ttl_ms=TTL_MS).valid is F


def test_belief_with_the_clients_deadline_and_without() -> None:
    found = check_model(history("A a 0-2; A b 12-14; R b 15-16"), "belief", ttl_ms=TTL_MS)
    assert by_name(found) == {"with-ttl": T, "naive": F}
    assert found.valid is T
    paused = check_model(history("A a 0-2; A b 4-6; R b 15-16"), "belief", ttl_ms=TTL_MS)
    assert by_name(paused) == {"with-ttl": F, "naive": F}
    assert paused.anomalies[0].side is Side.CLIENT
    assert paused.anomalies[0].overlap_ns == 4  # from 6 to 10
    assert check_model(history("A a 0-1 fail"), "belief", ttl_ms=1).stats["vacuous"]


def test_ttl_comes_from_option_header_or_every_acquire() -> None:
    text = "A a 0-2; A b 3-8"
    with pytest.raises(UserError, match="--ttl-ms"):
        check_model(history(text), "lease")
    with pytest.raises(UserError, match="--ttl-ms"):
        check_model(history(text), "belief")
    assert check_model(history(text, ttl_ns=10), "lease").valid is F
    assert check_model(history(text, ttl_ns=3), "lease").valid is T
    assert check_model(history(text, ttl_ns=3), "lease", ttl_ms=TTL_MS).valid is F
    own = history(text)
    for op in own.ops:
        op.value = {**op.value, "ttl_ns": 10}
    assert check_model(own, "lease").valid is F


def test_header_gives_permits_and_initial_value() -> None:
    text = "A a 0-1; A b 2-3; R a 6-7; R b 8-9"
    with pytest.raises(UserError, match="--k"):
        check_model(history(text), "semaphore")
    assert check_model(history(text, k=2), "semaphore").valid is T
    assert check_model(history(text, k=2), "semaphore", k=1).valid is F
    read = "r a 0-1 v=7"
    assert check_model(history(read, initial=7), "cas").valid is T
    assert check_model(history(read, initial=7), "cas", initial=8).valid is F


# ------------------------------------------------------------------------------ keys


def two_keys(first: str, second: str) -> History:
    parts = [history(first, key="x").ops, history(second, key="y").ops]
    ops = [
        Op(0, op.time, f"{op.key}{op.process}", op.type, op.f, op.key, op.value, op.error)
        for op in sorted((op for part in parts for op in part), key=lambda op: op.time)
    ]
    for index, op in enumerate(ops):
        op.index = index
    return History(ops)


def test_keys_are_judged_apart() -> None:
    good, bad = "A a 0-1; R a 2-3", "A a 0-1; A b 2-3; R b 4-5"
    found = check_model(two_keys(good, bad), "mutex")
    assert found.valid is F
    assert {part.stats["key"]: part.valid for part in found.sub} == {"x": T, "y": F}
    assert found.anomalies[0].key == "y"
    assert check_model(two_keys(good, good), "mutex").valid is T


def test_many_keys_are_listed_only_where_they_are_bad() -> None:
    ops: list[Op] = []
    for key in range(100):
        for f, kind in [("acquire", "invoke"), ("acquire", "ok")] * (2 if key == 50 else 1):
            value = {"hold": f"{key}-{len(ops) // 2}"}
            ops.append(Op(len(ops), len(ops), len(ops) // 2, kind, f, f"k{key}", value))
    found = check_model(History(ops), "mutex")
    assert found.stats["keys"] == 100
    assert [part.stats["key"] for part in found.sub] == ["k50"]


# ------------------------------------------------------------------------------ refusals


def test_malformed_histories_are_named_and_never_judged() -> None:
    ops = [
        Op(0, 0, 0, "ok", "acquire"),
        Op(1, 5, 1, "invoke", "acquire"),
        Op(1, 4, 1, "ok", "release"),
    ]
    with pytest.raises(UserError) as error:
        check_model(History(ops), "mutex")
    assert error.value.exit_code == 254
    assert len(error.value.problems) >= 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": "mutx"}, "did you mean 'mutex'"),
        ({"model": "mutex", "ttl_ms": 5}, "has no option ttl_ms"),
        ({"model": "mutex", "k": 2}, "has no option k"),
        ({"model": "lease", "initial": 2}, "has no option initial"),
        ({"model": "lease", "ttl_ms": 0}, "greater than 0"),
        ({"model": "semaphore", "k": 0}, "at least 1"),
        ({"model": "mutex", "engine": "magic"}, "must be one of auto, monitor, wgl, frontier"),
        ({"model": "mutex", "budget_s": -1}, "0 or more"),
        ({"model": "belief", "ttl_ms": 5, "engine": "wgl"}, "no search applies"),
        ({"model": "store"}, "index 0: write without an integer token"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], says: str) -> None:
    some = history("A a 0-1; R a 2-3; w c 4-5") if options["model"] != "store" else None
    some = some or history("w c 4-5")
    with pytest.raises(UserError, match=says):
        check_model(some, **options)


def test_aliases() -> None:
    text = "A a 0-1; R a 2-3"
    assert check_model(history(text), "lock").checker == "mutex"
    assert check_model(history("w a 0-1 t=1"), "resource").checker == "store"


# ------------------------------------------------------------------------------ against the oracle


@st.composite
def small_histories(draw: st.DrawFn) -> History:
    """A few operations of three clients on one lock, ids and outcomes at random."""
    parts = []
    for who in "abc"[: draw(st.integers(1, 3))]:
        now = draw(st.integers(0, 4))
        for f in "AR"[: draw(st.integers(1, 2))]:
            ret = now + draw(st.integers(0, 4))
            unknown = draw(st.integers(0, 3)) == 0
            parts.append(f"{f} {who} {now}-{'*' if unknown else ret}")
            now = ret + draw(st.integers(1, 3))
    return history("; ".join(parts), holds=draw(st.booleans()))


@given(some=small_histories(), engine=st.sampled_from(["auto", "wgl", "frontier"]))
def test_every_way_agrees_with_brute_force(some: History, engine: str) -> None:
    found = check_model(some, "mutex", engine=engine)
    if found.stats.get("vacuous"):
        return
    expected = linearizable(some.intervals(), make("mutex"))
    assert found.valid is (T if expected else F)


def test_header_is_untouched() -> None:
    some = history("A a 0-1; R a 2-3", ttl_ns=5)
    check_model(some, "mutex")
    assert some.header == Header(ttl_ns=5)


def test_public_names_are_what_they_say() -> None:
    import checkers

    assert set(checkers.__all__) == set(checkers._HOME)
    for name in checkers.__all__:
        assert getattr(checkers, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        checkers.nonsense  # noqa: B018  # the access is the test


# ------------------------------------------------------------------------------ explanations


def test_a_violation_is_explained_by_the_fewest_operations() -> None:
    text = "A x 0-1; R x 2-3; A a 4-5; R a 20-21; A b 6-7; R b 22-23; A y 24-25; R y 26-27"
    found = check_model(history(text), "mutex")
    first = found.anomalies[0]
    assert first.kind == "double-grant"
    told = history(text)
    grants = {(op.value["hold"], op.f) for op in told.ops if op.index in first.ops}
    assert grants == {("a", "acquire"), ("b", "acquire")}
    assert first.overlap_ns == 13
    assert "worker" in (first.picture or "")
    assert first.legal_if
    assert first.says in found.says
    plain = check_model(history(text), "mutex", explain=False).anomalies[0]
    assert plain.picture is None
    assert plain.kind == first.kind


def test_belief_is_drawn_without_a_model() -> None:
    found = check_model(history("A a 0-2; A b 4-6; R b 15-16"), "belief", ttl_ms=TTL_MS)
    assert "worker" in (found.anomalies[0].picture or "")
    assert found.anomalies[0].kind == "believed-overlap"


def test_a_long_history_is_explained_by_its_holders_alone() -> None:
    parts = [f"A h{i} {10 * i}-{10 * i + 1}; R h{i} {10 * i + 3}-{10 * i + 4}" for i in range(3000)]
    parts.append("A bad 15001-15002; R bad 15008-15009")
    found = check_model(history("; ".join(parts)), "mutex")
    assert found.valid is F
    assert found.anomalies[0].picture
    assert len(found.anomalies[0].ops) <= 6


def test_anomalies_of_a_run_are_drawn_with_their_holds() -> None:
    some = history("A a 0-2; R a 7-8; A b 3-5; R b 9-10")
    anomaly = Anomaly(kind="x", ops=[1, 3, 999])
    other = Anomaly(kind="y", ops=[1], picture="mine")
    none = Anomaly(kind="z")
    draw(some, [Result(checker="c", valid=F, anomalies=[anomaly, other, none])])
    assert "acquire by worker 0" in (anomaly.picture or "")
    assert "release by worker 0" in (anomaly.picture or "")  # context: the same hold
    assert (other.picture, none.picture) == ("mine", None)
