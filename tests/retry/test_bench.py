"""The comparison of policies: it is fair, repeatable, and the rules hold their own in it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from clients.retry.bench import NAMES, Service, Setup, Waiter, compare, run
from clients.retry.bench_live import LiveSetup, contend
from clients.retry.policies import POLICIES
from clients.retry.redis_link import Redis
from tests.clients.servers import redis_server
from tests.retry.test_command import lockhavoc
from tests.retry.test_sinks import url_of

SMALL = Setup(waiters=30, restart_at_ms=3_000)


def test_a_seed_repeats_a_run() -> None:
    assert run(SMALL, "rules", 5) == run(SMALL, "rules", 5)
    assert run(SMALL, "rules", 5) != run(SMALL, "rules", 6)


def test_a_restart_costs_time_and_an_empty_queue_none() -> None:
    calm = Setup(waiters=30, restart_ms=0)
    assert run(SMALL, "redis-py", 1)["max_ms"] > run(calm, "redis-py", 1)["max_ms"]
    alone = run(Setup(waiters=1), "rules", 1)
    assert (alone["calls_per_grant"], alone["wasted_calls"]) == (1, 0)


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, float]]:
    return {row["policy"]: row for row in compare(Setup(), seeds=3)["rows"]}


def test_all_policies_are_there(rows: dict[str, dict[str, float]]) -> None:
    assert set(rows) == set(NAMES)


def others(rows: dict[str, dict[str, float]]) -> list[dict[str, float]]:
    """Policies that are no rules and serve all."""
    return [rows[name] for name in POLICIES if rows[name]["gave_up"] == 0]


@pytest.mark.parametrize("name", ["rules, notices", "rules"])
def test_the_rules_serve_all_in_order_with_the_fewest_calls(
    rows: dict[str, dict[str, float]], name: str
) -> None:
    rules = rows[name]
    assert (rules["granted"], rules["gave_up"]) == (100, 0)
    # Not quite 0: two that arrive at once may reach the service the other way round.
    assert rules["passed_by"] < 0.1
    assert rules["calls_per_grant"] <= min(row["calls_per_grant"] for row in others(rows))
    assert rules["jain"] >= max(row["jain"] for row in others(rows))


def test_with_notices_nobody_waits_longer_than_under_the_best_policy(
    rows: dict[str, dict[str, float]],
) -> None:
    best = min(row["p99_ms"] for row in others(rows))
    assert rows["rules, notices"]["p99_ms"] <= best
    # Without, the floor of 50 ms leaves the lock idle for half of it at each grant.
    assert rows["rules"]["p99_ms"] <= 1.06 * best


def test_the_same_holds_without_notices_where_the_floor_is_lower() -> None:
    seeds = range(3)
    asked = [run(Setup(floor_ms=20), "rules", seed) for seed in seeds]
    polled = [run(Setup(), "redis-py", seed) for seed in seeds]
    assert sum(r["p99_ms"] for r in asked) <= sum(r["p99_ms"] for r in polled)


def test_notices_keep_to_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: dict[str, list[float]] = {}
    attempt = Service.attempt

    def noted(self: Service, waiter: Waiter, now_ms: float, *, in_order: bool) -> str:
        tries.setdefault(waiter.name, []).append(now_ms)
        return attempt(self, waiter, now_ms, in_order=in_order)

    monkeypatch.setattr(Service, "attempt", noted)
    run(Setup(), "rules, notices", 7)
    gaps = [b - a for times in tries.values() for a, b in pairwise(times)]
    assert len(gaps) > 100
    assert min(gaps) >= 50


@pytest.mark.live
def test_the_same_on_a_real_server_that_restarts(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:

        def restart() -> None:
            server.kill()
            server.start()

        setup = LiveSetup(waiters=8, arrive_within_ms=100, ttl_ms=500)
        for policy in ("rules, notices", "redis-py"):
            row = contend(url_of(server), policy, setup, 1, restart)
            assert (row["granted"], row["gave_up"]) == (8, 0)
            assert row["calls_per_grant"] >= 1
        words = ("--waiters", "3", "--policy", "rules", "--json")
        done = lockhavoc("retry", "bench", "--url", url_of(server), *words)
        found = json.loads(done.stdout)
        assert found["rows"][0]["granted"] == 3
        assert found["says"].endswith("not restarted")
        with Redis(url_of(server)) as redis:
            assert redis.call("KEYS", "*") == [], "the keys of the run are gone"


def test_what_the_command_cannot_do() -> None:
    for words in (("--policy", "nobody"), ("--backend", "redis-single", "--url", "redis://x")):
        done = lockhavoc("retry", "bench", *words)
        assert (done.returncode, words[0] in done.stderr) == (254, True)


def test_the_command() -> None:
    done = lockhavoc("retry", "bench", "--seeds", "1", "--waiters", "5", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["decisions_per_second"] > 0
    assert len(found["rows"]) == len(NAMES)
