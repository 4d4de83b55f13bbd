"""Right locks survive random faults, canaries do not: judged by what the server really did."""

from __future__ import annotations

import pytest

from clients.broken.constant_token import ConstantToken
from clients.broken.no_ttl import NoTtl
from clients.broken.read_then_delete import ReadThenDelete
from clients.broken.release_without_check import ReleaseWithoutCheck
from clients.broken.renewal_recreates import RenewalRecreates
from clients.broken.set_then_expire import SetThenExpire
from clients.broken.token_reused import TokenReused
from clients.recipes.base import Recipe
from clients.recipes.redis_lock import FencedRedisLock, RedisLock
from harness.core.clock import ms
from tests.sim.drive import Driver, Workload
from tests.sim.schedules import Outcome, run

PLAIN = Workload(work_ms=(5, 60), write=True)
RENEWING = Workload(work_ms=(100, 150), renew=True, write=True)


def double_grant(outcome: Outcome) -> bool:
    return bool(outcome.truth.double_grants())


def stuck(outcome: Outcome) -> bool:
    return not outcome.recovered


def token_order(outcome: Outcome) -> bool:
    return bool(outcome.truth.token_inversions())


@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("recipe", [RedisLock, FencedRedisLock])
def test_the_right_lock_holds_and_recovers(recipe: type[Recipe], block: int) -> None:
    granted = 0
    for seed in range(block * 10, block * 10 + 10):
        outcome = run(recipe, seed, RENEWING if seed % 2 else PLAIN)
        assert outcome.truth.double_grants() == [], f"seed {seed}"
        assert outcome.recovered, f"seed {seed}"
        if recipe.fencing:
            assert outcome.truth.token_inversions() == [], f"seed {seed}"
            assert outcome.setup.resource is not None
            tokens = [r.token or 0 for r in outcome.setup.resource.records if r.accepted]
            assert tokens == sorted(tokens), f"seed {seed}"
        granted += outcome.driver.granted
    assert granted > 10 * 50, "the schedules leave the lock no chance to be used"


CANARIES = [
    (NoTtl, PLAIN, stuck),
    (SetThenExpire, PLAIN, stuck),
    (ReleaseWithoutCheck, PLAIN, double_grant),
    (ReadThenDelete, PLAIN, double_grant),
    (RenewalRecreates, RENEWING, double_grant),
    (ConstantToken, PLAIN, double_grant),
    (TokenReused, PLAIN, token_order),
]


@pytest.mark.parametrize(
    ("recipe", "workload", "broken"), CANARIES, ids=[c[0].__name__ for c in CANARIES]
)
def test_a_canary_breaks(recipe: type[Recipe], workload: Workload, broken: object) -> None:
    assert callable(broken)
    assert any(broken(run(recipe, seed, workload)) for seed in range(20))


@pytest.mark.parametrize("recipe", [c[0] for c in CANARIES], ids=[c[0].__name__ for c in CANARIES])
def test_a_canary_looks_right_in_fair_weather(recipe: type[Recipe]) -> None:
    """Each makes one mistake only, which takes a fault to show."""
    from clients.sim.world import build
    from harness.core.rng import stream

    setup = build(recipe, workers=4, seed=1, truth=True)
    driver = Driver(setup, Workload(work_ms=(1, 10)), stream(1, "test/workload"))
    driver.run_until(ms(3_000))
    assert setup.truth is not None
    assert driver.granted > 100
    assert setup.truth.double_grants() == []
    if recipe.fencing:
        assert setup.truth.token_inversions() == []
    assert {e.reply.error for e in driver.events if e.reply} <= {None, "busy"}


@pytest.mark.parametrize("recipe", [FencedRedisLock, ReadThenDelete])
def test_the_same_seed_gives_the_same_bytes(recipe: type[Recipe]) -> None:
    import msgspec

    def record(seed: int) -> bytes:
        outcome = run(recipe, seed, RENEWING)
        assert outcome.setup.resource is not None
        return msgspec.json.encode([outcome.driver.events, outcome.setup.resource.records])

    first = record(5)
    assert first == record(5)
    assert first != record(6)
