"""The clock, the runtime, and what seeds do to a world."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.recipes.redis_lock import RedisLock
from clients.sim.clock import SimClock
from clients.sim.runtime import SimRuntime
from clients.sim.world import build, recipe_of
from harness.core.errors import HarnessError, RefusedError, UserError
from harness.core.protocols import Cluster, Ledger, Runtime
from harness.core.undo import Step


class NoLedger:
    """Fails if anything is promised: a simulated world leaves nothing to undo."""

    def promise(self, steps: list[Step], *, why: str) -> int:
        raise AssertionError(why)

    def done(self, promise: int) -> None:
        raise AssertionError(promise)


def test_events_of_one_instant_happen_in_the_order_in_which_they_were_planned() -> None:
    clock, seen = SimClock(), []
    for number in range(50):
        clock.at(7, seen.append, number)
    clock.at(5, lambda _: clock.at(3, seen.append, "late: at once"), None)
    clock.sleep_until(10)
    assert seen == ["late: at once", *range(50)]
    assert clock.now() == 10


def test_run_stops_after_the_instant_that_filled_the_outbox() -> None:
    clock, outbox = SimClock(), []
    for at_ns in (5, 5, 6):
        clock.at(at_ns, outbox.append, at_ns)
    clock.run(100, outbox)
    assert (outbox, clock.now()) == ([5, 5], 5)


def test_waiting_from_inside_an_event_is_an_error_not_a_hang() -> None:
    clock = SimClock()
    clock.at(5, lambda _: clock.sleep_until(10), None)
    with pytest.raises(HarnessError, match="from inside an event"):
        clock.sleep_until(20)
    clock.sleep_until(30)
    assert clock.now() == 30


def test_the_runtime_takes_the_single_server_and_refuses_the_rest(tmp_path: Path) -> None:
    runtime: Runtime = SimRuntime(seed=3)
    ledger: Ledger = NoLedger()
    assert runtime.can("sim") is None
    assert runtime.can("redis-single") is None
    assert "not simulated" in (runtime.can("etcd") or "")
    cluster: Cluster = runtime.up("sim", {}, workers=3, run_dir=tmp_path, ledger=ledger)
    assert [link.src for link in cluster.links] == ["w0", "w1", "w2"]
    assert cluster.nodes[cluster.primary()].probe(5).outcome == "answered"
    cluster.collect_logs(tmp_path)
    cluster.down()
    with pytest.raises(RefusedError, match="etcd"):
        runtime.up("etcd", {}, workers=1, run_dir=tmp_path, ledger=ledger)


def test_another_worker_shifts_no_choice_of_the_others() -> None:
    few, many = build(RedisLock, workers=2, seed=9), build(RedisLock, workers=5, seed=9)
    for one, other in zip(few.cluster.worker_links, many.cluster.worker_links, strict=False):
        assert [one.drawn_ns() for _ in range(20)] == [other.drawn_ns() for _ in range(20)]
    again = build(RedisLock, workers=2, seed=10).cluster.worker_links[0]
    fresh = build(RedisLock, workers=2, seed=9).cluster.worker_links[0]
    assert [again.drawn_ns() for _ in range(20)] != [fresh.drawn_ns() for _ in range(20)]


def test_a_library_is_found_by_its_name() -> None:
    assert recipe_of("recipe-redis") is RedisLock
    with pytest.raises(UserError, match="did you mean 'recipe-redis'"):
        recipe_of("recipe-rediss")
