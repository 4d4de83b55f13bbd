"""Models: one sentence of the published semantics, one test."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.models import MODELS, make
from checkers.models.base import Model, freeze, integer, until_ns
from harness.core.errors import UserError
from harness.core.history import Interval, Op


def op(
    f: str,
    value: Any = None,
    *,
    kind: str = "ok",
    error: str | None = None,
    process: int = 0,
    at: tuple[int, int] = (0, 1),
    answer: Any = None,
) -> Interval:
    done = Op(1, at[1], process, kind, f, "k", value if answer is None else answer, error)
    return Interval(Op(0, at[0], process, "invoke", f, "k", value), done)


def run(model: Model, *ops: Interval) -> Any:
    """The state after ``ops``, or None at the first that is not legal."""
    state = model.init
    for one in ops:
        prepared = model.prepare(one)
        if prepared is None:
            continue
        state = model.step(state, prepared)
        if state is None:
            return None
    return state


@pytest.mark.parametrize("name", MODELS.names())
def test_every_model_can_be_made(name: str) -> None:
    model = make(name, **({"ttl_ns": 5} if name == "lease" else {}))
    assert model.init is not None
    hash(model.init)
    assert model.prepare(op("something-else")) is None
    assert model.partition(op("read")) == "k"


def test_unknown_name_and_option() -> None:
    with pytest.raises(UserError, match="did you mean 'mutex'"):
        make("mutx")
    with pytest.raises(UserError, match="no option 'n'"):
        make("semaphore", n=3)
    with pytest.raises(UserError, match="at least 1"):
        make("semaphore", k=0)


def test_mutex_is_not_reentrant_and_knows_its_owner() -> None:
    mutex = make("mutex")
    assert run(mutex, op("acquire"), op("acquire")) is None
    assert run(mutex, op("acquire"), op("release")) == ()
    assert run(mutex, op("acquire"), op("release", process=1)) is None
    assert run(mutex, op("lock"), op("extend"), op("unlock")) == ()
    named = {"owner": "w"}
    assert run(mutex, op("acquire", named), op("release", named, process=9)) == ()


def test_hold_ids_decide_where_both_have_one() -> None:
    mutex = make("mutex")
    first, second = {"hold": "h1", "owner": "w"}, {"hold": "h2", "owner": "w"}
    assert run(mutex, op("acquire", first), op("release", second)) is None
    assert run(mutex, op("acquire", first), op("release", {"hold": "h1"}, process=5)) == ()
    assert run(mutex, op("acquire", first), op("release", {"owner": "w"})) == ()


def test_refusals_that_observed_and_refusals_that_say_nothing() -> None:
    mutex = make("mutex")
    busy = op("acquire", kind="fail", error="busy", process=1)
    assert run(mutex, busy) is None
    assert run(mutex, op("acquire"), busy) is not None
    lost = op("release", kind="fail", error="not-held")
    assert run(mutex, op("acquire"), lost) is None
    assert run(mutex, lost) == ()
    assert mutex.prepare(op("acquire", kind="fail", error="timeout")) is None
    assert mutex.prepare(op("acquire", kind="fail", error="not-held")) is None


def test_reentrant_counts_by_owner_up_to_its_limit() -> None:
    lock = make("reentrant", limit=2)
    again = [op("acquire", {"hold": str(i)}) for i in range(3)]
    assert run(lock, *again[:2], op("release")) == (0, 1)
    assert run(lock, *again[:2], op("release"), op("release")) == ()
    assert run(lock, *again) is None
    assert run(lock, *again[:2], op("acquire", kind="fail", error="busy")) == (0, 2)
    assert run(make("reentrant"), *again) == (0, 3)


def test_fenced_tokens_rise_beyond_2_53() -> None:
    fenced = make("fenced")
    big = 2**53
    first, second = op("acquire", {"token": big + 1}), op("acquire", {"token": big + 2})
    assert run(fenced, first, op("release"), second) is not None
    assert run(fenced, first, op("release"), first) is None
    assert run(fenced, second, op("release"), first) is None
    assert run(fenced, op("acquire", {"token": 1}), op("release", {"token": 2})) is None
    assert run(fenced, op("acquire")) is None, "a grant without a token is illegal"
    assert run(fenced, op("acquire", {"token": True})) is None
    assert run(fenced, op("acquire", {"token": 1.0})) is None
    assert run(fenced, op("acquire", {"token": str(big + 1)})) is not None


def test_unknown_grant_uses_up_a_token() -> None:
    fenced = make("fenced")
    lost = op("acquire", kind="info", process=1)
    ended = op("release", process=1)
    one, two, three = (op("acquire", {"token": token}) for token in (1, 2, 3))
    assert run(fenced, one, op("release"), lost, ended, two) is None
    assert run(fenced, one, op("release"), lost, ended, three) is not None
    told = op("release", {"token": 7}, process=1)
    assert run(fenced, one, op("release"), lost, told, three) is None
    assert run(fenced, three, op("release"), lost, op("release", {"token": 3}, process=1)) is None
    assert run(fenced, lost, ended, op("acquire", {"token": -5})) is not None


def test_semaphore_weights_and_shared_owners() -> None:
    sem = make("semaphore", k=3)
    two, one = {"hold": "a", "permits": 2}, {"hold": "b"}
    assert run(sem, op("acquire", two), op("acquire", one)) is not None
    assert run(sem, op("acquire", two), op("acquire", {"hold": "b", "permits": 2})) is None
    whole = run(sem, op("acquire", two), op("release", {"hold": "a"}))
    assert whole == frozenset()
    part = run(sem, op("acquire", two), op("release", {"hold": "a", "permits": 1}))
    assert part == frozenset({(("hold", "a"), 1)})
    assert run(sem, op("acquire"), op("acquire"), op("release")) == frozenset({(0, 1)})
    assert run(sem, op("release")) is None
    busy = op("acquire", {"hold": "c", "permits": 2}, kind="fail", error="busy")
    assert run(sem, op("acquire", one), busy) is None
    assert run(sem, op("acquire", two), busy) is not None


@pytest.mark.parametrize(
    ("read", "write"),
    [
        (op("acquire", {"mode": "read"}), op("acquire", {"mode": "exclusive"}, process=1)),
        (op("read-lock"), op("write_acquire", process=1)),
        (op("rlock"), op("wlock", process=1)),
        (op("acquire-shared"), op("acquire", process=1)),
    ],
)
def test_rwlock_spellings(read: Interval, write: Interval) -> None:
    rw = make("rwlock")
    assert run(rw, read, read) is not None, "read holds are counted"
    assert run(rw, read, write) is None
    assert run(rw, write, read) is None
    assert run(rw, read, read, op("release"), write) is None
    assert run(rw, read, read, op("release"), op("release"), write) is not None


def test_rwlock_changes_mode() -> None:
    rw = make("rwlock")
    write, other = op("wlock"), op("rlock", process=1)
    assert run(rw, write, other) is None
    assert run(rw, write, op("downgrade"), other) is not None
    assert run(rw, write, op("downgrade"), other, op("upgrade")) is None
    assert run(rw, write, op("downgrade"), op("upgrade"), other) is None
    assert run(rw, write, op("runlock")) is None
    assert run(rw, write, op("release")) == rw.init


def test_register_values_and_failed_cas() -> None:
    cas = make("cas", initial=1)
    assert run(cas, op("read", answer=1)) is not None
    assert run(cas, op("read", answer=True)) is None, "true is not 1"
    assert run(cas, op("cas", [1, 2]), op("read", answer=2)) is not None
    assert run(cas, op("cas", {"from": 1, "to": [3]}), op("read", answer=[3])) is not None
    assert cas.prepare(op("cas", [1, 2], kind="fail")) is None
    assert run(cas, op("cas", [1, 2], kind="fail", error="mismatch")) is None
    watching = make("cas", initial=1, failed_cas_observes=True)
    assert run(watching, op("cas", [1, 2], kind="fail")) is None
    assert cas.prepare(op("read", kind="info")) is None
    with pytest.raises(UserError, match="must be a pair"):
        cas.prepare(op("cas", 5))


def test_kv_appends() -> None:
    kv = make("kv")
    assert run(kv, op("append", "a"), op("append", "b"), op("get", answer="ab")) == "ab"
    assert run(kv, op("put", "x"), op("append", "b"), op("get", answer="b")) is None


def test_store_accepts_equal_and_greater_tokens() -> None:
    store = make("store")
    one, two = op("write", {"token": 2**60 + 1}), op("write", {"token": 2**60 + 2})
    assert run(store, one, one, two) == 2**60 + 2
    assert run(store, two, one) is None
    refused = op("write", {"token": 2**60 + 1}, kind="fail", error="stale")
    assert run(store, two, refused) is not None
    assert run(store, one, refused) is None


def test_lease_boundaries() -> None:
    first = op("acquire", {"hold": "a"}, at=(0, 0))
    for kind in ("safe", "exact"):
        lease = make("lease", ttl_ns=10, property=kind)
        assert run(lease, first, op("acquire", {"hold": "b"}, at=(10, 10))) is not None
        assert run(lease, first, op("acquire", {"hold": "b"}, at=(9, 9))) is None
        late = run(lease, first, op("renew", {"hold": "a"}, at=(10, 10)))
        assert (late is not None) == (kind == "safe"), "over at the TTL, unless it may linger"
        assert run(lease, first, op("renew", {"hold": "a"}, at=(9, 9))) is not None
        lost = op("release", {"hold": "a"}, kind="fail", error="not-held", at=(9, 9))
        assert run(lease, first, lost) is None
    assert run(make("lease", ttl_ns=10, drift_ppm=100_000), first, op("acquire", at=(9, 9)))


def test_lease_needs_a_ttl_and_a_known_property() -> None:
    with pytest.raises(UserError, match="no ttl_ns"):
        make("lease").prepare(op("acquire"))
    assert make("lease").prepare(op("acquire", {"ttl_ns": 5})) is not None
    with pytest.raises(UserError, match="'safe' or 'exact'"):
        make("lease", property="best")
    with pytest.raises(UserError, match="drift_ppm"):
        make("lease", property="exact", drift_ppm=5)


def test_json_values_freeze_apart() -> None:
    values = [None, True, False, 0, 1, 2, "1", [1], {"a": 1}, {"a": True}, [True], [[1]], "None"]
    frozen = [freeze(value) for value in values]
    assert len(set(frozen)) == len(frozen) == len({repr(one) for one in frozen})
    assert freeze({"a": 1, "b": 2}) == freeze({"b": 2, "a": 1})
    assert integer("-12") == -12
    assert integer("1.0") is None


def test_until_is_read_from_value_or_extra() -> None:
    assert until_ns(op("write", {"until_ns": 7}, kind="info")) == 7
    one = op("write", 1, kind="info")
    assert until_ns(one) is None
    one.invoke.extra = {"until_ns": 9}
    assert until_ns(one) == 9
