"""Random fault schedules over a simulated world, healed at the end.

Everything is drawn from one stream, so a seed names a schedule.  Faults act on the simulation's
own objects; the nemesis room has tests of its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from clients.recipes.base import Recipe
from clients.sim.truth import Truth
from clients.sim.world import SimSetup, build
from harness.core.clock import ms
from harness.core.rng import stream
from tests.sim.drive import Driver, Workload

WORKERS = 4
FAULTS_MS = 4_000  # how long faults go on
CALM_MS = 4_000  # afterwards: longer than every lease, wait and socket limit together


@dataclass
class Outcome:
    """What a schedule did."""

    setup: SimSetup
    driver: Driver
    truth: Truth
    healed_ns: int

    @property
    def recovered(self) -> bool:
        """Was the lock granted in the second half of the calm?"""
        return self.truth.last_grant_ns() > self.healed_ns + ms(CALM_MS // 2)


class Chaos:
    """One fault at a time, each with its heal."""

    def __init__(self, setup: SimSetup, driver: Driver, rng: random.Random, ttl_ms: int) -> None:
        self.setup, self.driver, self.rng, self.ttl_ms = setup, driver, rng, ttl_ms

    def one(self) -> None:
        """Draws, injects, waits and heals one fault."""
        kinds = [self.pause, self.pause, self.kill, self.slow, self.link, self.server]
        self.rng.choice(kinds)()
        self._wait(self.rng.uniform(0, 0.5))

    def pause(self) -> None:
        worker = self.rng.choice(self.setup.workers)
        worker.pause()
        self._wait(self.rng.uniform(0.2, 2.0))
        worker.resume()

    def kill(self) -> None:
        worker = self.rng.choice(self.setup.workers)
        worker.kill()
        self._wait(self.rng.uniform(0.1, 0.5))
        worker.start()

    def slow(self) -> None:
        """Slow answers for one or all, and now and then a death in the middle of them."""
        worker = self.rng.choice(self.setup.workers)
        links = self.setup.cluster.worker_links
        if self.rng.random() < 0.5:
            links = [links[worker.index]]
        delay_ms = round(self.ttl_ms * self.rng.uniform(0.2, 0.9))
        for link in links:
            link.add_toxic("latency", "downstream", {"latency": delay_ms})
        self._wait(self.rng.uniform(2.0, 6.0))
        if self.rng.random() < 0.5:
            worker.kill()
            self._wait(0.2)
            worker.start()
        for link in links:
            link.clear()

    def link(self) -> None:
        link = self.rng.choice(self.setup.cluster.worker_links)
        direction = self.rng.choice(["upstream", "downstream"])
        kind = self.rng.choice(["bandwidth", "timeout", "limit_data", "sever"])
        if kind == "sever":
            link.set_enabled(False)
        else:
            link.add_toxic(kind, direction, {})  # type: ignore[arg-type]  # drawn from both
        self._wait(self.rng.uniform(0.2, 2.5))
        link.clear()

    def server(self) -> None:
        node = self.setup.cluster.node
        if self.rng.random() < 0.5:
            node.pause()
            self._wait(self.rng.uniform(0.1, 1.5))
            node.resume()
        else:
            node.kill()
            self._wait(self.rng.uniform(0.1, 1.0))
            node.start()

    def _wait(self, leases: float) -> None:
        span_ns = ms(self.ttl_ms * leases)
        self.driver.run_until(self.setup.clock.now() + span_ns)


def run(recipe: type[Recipe], seed: int, workload: Workload) -> Outcome:
    """Faults for FAULTS_MS, then calm for CALM_MS."""
    mode = "fenced" if recipe.fencing else "unfenced"
    setup = build(recipe, workers=WORKERS, seed=seed, resource_mode=mode, truth=True)
    assert setup.truth is not None
    driver = Driver(setup, workload, stream(seed, "test/workload"))
    chaos = Chaos(setup, driver, stream(seed, "test/chaos"), workload.ttl_ms)
    while setup.clock.now() < ms(FAULTS_MS):
        chaos.one()
    healed_ns = setup.clock.now()
    driver.run_until(healed_ns + ms(CALM_MS))
    return Outcome(setup, driver, setup.truth, healed_ns)
