"""A tiny workload for simulated worlds: each worker acquires, works, writes, releases, again.

Not the harness' interpreter: these tests look at the simulation alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from clients.sim.world import SimSetup
from harness.core.clock import NS_PER_MS, ms
from harness.core.messages import PoolEvent, Reply, Request


@dataclass
class Workload:
    """Settings in ms; ``renew`` renews once half-way through the work."""

    ttl_ms: int = 200
    timeout_ms: int = 400
    work_ms: tuple[float, float] = (1, 30)
    renew: bool = False
    write: bool = False
    key: str = "k0"


@dataclass
class Driver:
    """Runs a workload on every worker and keeps all events."""

    setup: SimSetup
    workload: Workload
    rng: random.Random
    events: list[PoolEvent] = field(default_factory=list)
    granted: int = 0

    def __post_init__(self) -> None:
        self._ids = 0
        self._hold: dict[int, str] = {}
        self._token: dict[int, int | None] = {}
        self._asked: dict[int, str] = {}
        self._lives: dict[int, int] = {}
        self._holds = 0
        self._stopped = False

    def run_until(self, deadline_ns: int) -> None:
        """Takes events until the deadline."""
        pool, clock = self.setup.pool, self.setup.clock
        while clock.now() < deadline_ns:
            for event in pool.poll(deadline_ns):
                self.take(event)

    def stop(self) -> None:
        """No new acquires from now on."""
        self._stopped = True

    def take(self, event: PoolEvent) -> None:
        """Answers one event with the worker's next request."""
        self.events.append(event)
        reply, worker = event.reply, event.worker
        if reply is None:
            self._lives[worker] = self._lives.get(worker, 0) + 1
            self._asked.pop(worker, None)
            return
        assert reply.invoke <= reply.complete <= event.received_ns
        if reply.event == "hello":
            self._ask(worker, "open")
            return
        done = self._asked.pop(worker)
        if reply.type == "info":
            self._in_a_moment(worker, lambda: self._ask(worker, "open"))
            return
        getattr(self, f"_after_{done}")(worker, reply)

    def _after_open(self, worker: int, reply: Reply) -> None:
        assert reply.type == "ok", reply.error
        if not self._stopped:
            self._holds += 1
            self._hold[worker] = f"{worker}-{self._holds}"
            self._ask(worker, "acquire")

    def _after_acquire(self, worker: int, reply: Reply) -> None:
        if reply.type == "fail":
            self._rest(worker)
            return
        self.granted += 1
        self._token[worker] = reply.value["token"]
        share = 0.5 if self.workload.renew else 1.0
        step = "renew" if self.workload.renew else "write" if self.workload.write else "release"
        self._after_work(worker, step, share)

    def _after_renew(self, worker: int, reply: Reply) -> None:
        if reply.type == "fail":
            self._after_open(worker, Reply(type="ok"))
        else:
            self._after_work(worker, "write" if self.workload.write else "release", 0.5)

    def _after_write(self, worker: int, reply: Reply) -> None:
        self._ask(worker, "release")

    def _after_release(self, worker: int, reply: Reply) -> None:
        if reply.type == "fail":
            self._rest(worker)
        else:
            self._after_open(worker, Reply(type="ok"))

    def _rest(self, worker: int) -> None:
        self._in_a_moment(worker, lambda: self._after_open(worker, Reply(type="ok")))

    def _in_a_moment(self, worker: int, then: Callable[[], None]) -> None:
        """Trouble with the network costs microseconds only: who retries at once, retries a lot."""
        self._unless_dead(worker, 5, then)

    def _unless_dead(self, worker: int, after_ms: float, then: Callable[[], None]) -> None:
        life = self._lives.get(worker, 0)

        def do(_: None) -> None:
            if self._lives.get(worker, 0) == life:
                then()

        self.setup.clock.at(self.setup.clock.now() + ms(after_ms), do)

    def _after_work(self, worker: int, step: str, share: float) -> None:
        work_ms = self.rng.uniform(*self.workload.work_ms) * share
        self._unless_dead(worker, work_ms, lambda: self._ask(worker, step))

    def _ask(self, worker: int, do: str) -> None:
        self._ids += 1
        self._asked[worker] = do
        request = Request(self._ids, do)
        if do != "open":
            request.key = "r" if do == "write" else self.workload.key
            request.hold = self._hold.get(worker)
            request.ttl_ms, request.timeout_ms = self.workload.ttl_ms, self.workload.timeout_ms
        if do == "write":
            request.token, request.value = self._token.get(worker), self._ids
        self.setup.pool.send(worker, request)


def advance(setup: SimSetup, span_ms: float) -> None:
    """Lets so much virtual time pass."""
    setup.clock.sleep_until(setup.clock.now() + round(span_ms * NS_PER_MS))
