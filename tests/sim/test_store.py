"""The simulated server: commands, expiry on the wall clock, scripts, errors."""

from __future__ import annotations

import pytest

from clients.recipes.base import ServerError
from clients.recipes.redis_lock import GRANT, RELEASE, RENEW, token_key
from clients.recipes.redis_members import HOLDS, LEAVE, STAY
from clients.recipes.redis_semaphore import ENTER
from clients.sim.clock import SimClock
from clients.sim.store import SimStore
from harness.core.clock import NS_PER_MS, ms


@pytest.fixture
def clock() -> SimClock:
    return SimClock()


@pytest.fixture
def store(clock: SimClock) -> SimStore:
    return SimStore(clock)


def test_set_nx_refuses_a_present_key_and_xx_a_missing_one(store: SimStore) -> None:
    assert store.execute(("SET", "k", "a", "XX")) is None
    assert store.execute(("SET", "k", "a", "NX")) is True
    assert store.execute(("SET", "k", "b", "NX", "PX", 5)) is None
    assert store.execute(("SET", "k", "c", "PX", 5, "XX")) is True
    assert store.execute(("GET", "k")) == "c"


def test_a_lease_lasts_its_ttl_and_less_than_a_millisecond_more(
    clock: SimClock, store: SimStore
) -> None:
    clock.sleep_until(ms(7.4))
    store.execute(("SET", "k", "a", "NX", "PX", 100))
    clock.sleep_until(ms(107.4))
    assert store.execute(("GET", "k")) == "a"
    assert store.execute(("PTTL", "k")) == 0
    clock.sleep_until(ms(108))
    assert store.execute(("GET", "k")) is None
    assert store.execute(("PTTL", "k")) == -2


def test_a_plain_set_takes_the_lease_away(store: SimStore) -> None:
    store.execute(("SET", "k", "a", "PX", 100))
    store.execute(("SET", "k", "b"))
    assert store.execute(("PTTL", "k")) == -1


def test_pexpire_extends_shortens_and_deletes(clock: SimClock, store: SimStore) -> None:
    assert store.execute(("PEXPIRE", "k", 10)) == 0
    store.execute(("SET", "k", "a", "EX", 1))
    assert store.execute(("PTTL", "k")) == 1000
    assert store.execute(("PEXPIRE", "k", 5)) == 1
    clock.sleep_until(ms(6))
    assert store.execute(("EXISTS", "k")) == 0
    store.execute(("SET", "k", "a"))
    assert store.execute(("PEXPIRE", "k", 0)) == 1
    assert store.keys() == []


def test_a_step_of_the_wall_clock_ends_leases(store: SimStore) -> None:
    store.execute(("SET", "k", "a", "PX", 1000))
    store.wall_offset_ns = 2_000 * NS_PER_MS
    assert store.execute(("GET", "k")) is None


def test_incr_counts_keeps_the_lease_and_refuses_text(store: SimStore) -> None:
    assert [store.execute(("INCR", "n")) for _ in range(3)] == [1, 2, 3]
    store.execute(("PEXPIRE", "n", 50))
    store.execute(("INCR", "n"))
    assert store.execute(("PTTL", "n")) == 50
    for text in ("x", "01", "-0", "+1", "1.0", "", str(2**63)):
        store.execute(("SET", "n", text))
        with pytest.raises(ServerError, match="not an integer"):
            store.execute(("INCR", "n"))


@pytest.mark.parametrize(
    "command",
    [
        ("NOPE",),
        ("SET", "k", "a", "NX", "PX", 0),
        ("SET", "k", "a", "PX", -5, "NX"),
        ("SET", "k", "a", "NX", "XX"),
        ("SET", "k", "a", "PX"),
    ],
)
def test_wrong_use_is_an_error_and_changes_nothing(
    store: SimStore, command: tuple[object, ...]
) -> None:
    with pytest.raises(ServerError):
        store.execute(command)
    assert isinstance(store.answer(command), ServerError)
    assert store.keys() == []


def test_scripts_grant_renew_and_release_by_owner(clock: SimClock, store: SimStore) -> None:
    keys = ("k", token_key("k"))
    assert store.execute(("EVAL", GRANT, keys, ("me", 100))) == 1
    assert store.execute(("EVAL", GRANT, keys, ("you", 100))) is None
    assert store.execute(("EVAL", RENEW, ("k",), ("you", 100))) == 0
    assert store.execute(("EVAL", RELEASE, ("k",), ("you",))) == 0
    clock.sleep_until(ms(90))
    assert store.execute(("EVAL", RENEW, ("k",), ("me", 100))) == 1
    clock.sleep_until(ms(150))
    assert store.execute(("EVAL", RELEASE, ("k",), ("me",))) == 1
    assert store.execute(("EVAL", GRANT, keys, ("you", 100))) == 2


def test_flushall_empties_and_counters_count(store: SimStore) -> None:
    store.execute(("SET", "k", "a"))
    assert store.execute(("ECHO", "hi")) == "hi"
    store.execute(("FLUSHALL",))
    assert (store.keys(), store.commands, store.echoes) == ([], 3, 1)


def test_shares_end_by_the_servers_clock_and_take_the_set_along(
    clock: SimClock, store: SimStore
) -> None:
    for owner, ttl_ms in (("a", 100), ("b", 300)):
        assert store.execute(("EVAL", ENTER, ("s",), (owner, ttl_ms, 2))) == 1
    assert store.execute(("EVAL", ENTER, ("s",), ("c", 100, 2))) == 0
    clock.sleep_until(ms(101))
    assert store.execute(("EVAL", HOLDS, ("s",), ("a",))) == 0
    assert store.execute(("EVAL", ENTER, ("s",), ("c", 100, 2))) == 1
    assert store.execute(("EVAL", STAY, ("s",), ("a", 100))) == 0
    assert store.execute(("EVAL", LEAVE, ("s",), ("c",))) == 1
    assert store.execute(("EVAL", LEAVE, ("s",), ("c",))) == 0
    clock.sleep_until(ms(301))
    assert store.keys() == []


def test_a_sorted_set_is_no_text_and_goes_when_it_is_empty(store: SimStore) -> None:
    assert store.execute(("ZADD", "s", 5, "a")) == 1
    assert store.execute(("ZADD", "s", 7, "a")) == 0
    assert store.execute(("ZSCORE", "s", "a")) == "7"
    assert store.execute(("ZRANGE", "s", -1, -1, "WITHSCORES")) == ["a", "7"]
    for command in (("GET", "s"), ("INCR", "s")):
        assert isinstance(store.answer(command), ServerError)
    store.execute(("SET", "k", "text"))
    assert isinstance(store.answer(("ZCARD", "k")), ServerError)
    assert store.execute(("ZREMRANGEBYSCORE", "s", "-inf", 7)) == 1
    assert (store.execute(("ZCARD", "s")), store.keys()) == (0, ["k"])


def test_time_is_the_servers_own(clock: SimClock, store: SimStore) -> None:
    clock.sleep_until(ms(1234.5))
    assert store.execute(("TIME",)) == ["1", "234500"]
