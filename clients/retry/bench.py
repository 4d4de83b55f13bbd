"""Compares the rules with the usual policies on one contended lock, in virtual time.

    compare(Setup(), seeds=20)["rows"]

The service is a lock with a lease: one holder, a TTL, holds of random length, an answer after some
milliseconds, and a restart in the middle during which every call is refused; what was held stays
held, and a release that meets the restart is lost, so the lease has to end.  All policies meet the
same arrivals, holds and answer times of a seed.  Clients of the rules see what a service with a
queue can tell: holder, age of its lease, own place.  ``rules, notices`` is also told when it is
its turn, as a watch or a message would (``loop``'s ``notice``); a notice that meets the restart
is lost.  ``rules, no queue`` sees and hears nothing.

Traps: nobody who gave up is in the waits, so look at ``granted`` first.  An escalation counts as
wrong here always: every waiter could have been served within its budget.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from clients.retry.facts import DEFAULTS, Settings
from clients.retry.model import Context, context_from
from clients.retry.monitor import jain, quantile
from clients.retry.policies import POLICIES
from clients.retry.rules import decide
from harness.core.rng import stream

QUEUED = ("rules, notices", "rules")  # these stand in the service's queue
BY_RULES = (*QUEUED, "rules, no queue")
NAMES = (*BY_RULES, *POLICIES)


@dataclass(frozen=True)
class Setup:
    """One contended lock.  Times in ms."""

    waiters: int = 100
    arrive_within_ms: int = 2_000
    hold_ms: tuple[int, int] = (150, 250)
    answer_ms: tuple[int, int] = (1, 4)
    ttl_ms: int = 3_000
    restart_at_ms: int = 8_000
    restart_ms: int = 1_500
    budget_ms: int = 120_000
    floor_ms: int = DEFAULTS.floor_ms  # that the rules keep to


@dataclass
class Waiter:
    """One client that wants the lock once."""

    name: str
    arrives_ms: float
    hold_ms: float
    rng: Random
    failures: int = 0
    reasons: set[str] = field(default_factory=set)
    previous_ms: int = 0
    tried_ms: float = 0.0
    next_ms: float = 0.0  # when its next call reaches the service
    granted_ms: float | None = None


class Service:
    """The lock; all times are readings of the virtual clock in ms."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.holder: Waiter | None = None
        self.since_ms = 0.0
        self.free_at_ms = 0.0
        self.queue: list[Waiter] = []
        self.calls = 0

    def down(self, now_ms: float) -> bool:
        """Whether the restart is on."""
        begins = self.setup.restart_at_ms
        return begins <= now_ms < begins + self.setup.restart_ms

    def attempt(self, waiter: Waiter, now_ms: float, *, in_order: bool) -> str:
        """Grants (empty answer) or says why not."""
        self.calls += 1
        if self.down(now_ms):
            return "connection refused"
        if waiter not in self.queue:
            self.queue.append(waiter)
        if now_ms < self.free_at_ms or (in_order and self.queue[0] is not waiter):
            return "lock held"
        self.queue.remove(waiter)
        self.holder, self.since_ms = waiter, now_ms
        release_ms = now_ms + waiter.hold_ms
        # A release that meets the restart is lost, and the lease has to end by itself.
        self.free_at_ms = now_ms + self.setup.ttl_ms if self.down(release_ms) else release_ms
        return ""


class Run:
    """One policy under one seed."""

    def __init__(self, setup: Setup, policy: str, seed: int) -> None:
        self.setup, self.policy, self.seed = setup, policy, seed
        self.settings = Settings(floor_ms=setup.floor_ms)
        self.service, self.waiters = Service(setup), list(_waiters(setup, seed))
        self.answers = stream(seed, "bench/answers")
        # Keyed by when the call reaches the service, so that it sees calls in order.
        self.events: list[tuple[float, int]] = []
        for number, waiter in enumerate(self.waiters):
            self._at(number, waiter.arrives_ms)

    def figures(self) -> dict[str, float]:
        """Runs to the end."""
        while self.events:
            now_ms, number = heapq.heappop(self.events)
            if number == NOTICE:
                self._notice(now_ms)
            elif self.waiters[number].next_ms == now_ms:  # else a notice has put it forward
                self._attempt(number, now_ms)
        times = [(w.arrives_ms, w.granted_ms) for w in self.waiters]
        return figures(times, self.service.calls)

    def _at(self, number: int, sent_ms: float) -> None:
        reaches_ms = sent_ms + self.answers.uniform(*self.setup.answer_ms)
        self.waiters[number].next_ms = reaches_ms
        heapq.heappush(self.events, (reaches_ms, number))

    def _attempt(self, number: int, now_ms: float) -> None:
        setup, service, waiter = self.setup, self.service, self.waiters[number]
        waiter.tried_ms = now_ms
        refused = service.attempt(waiter, now_ms, in_order=self.policy in QUEUED)
        if not refused:
            waiter.granted_ms = now_ms
            release_ms = now_ms + waiter.hold_ms
            if self.policy == "rules, notices" and not service.down(release_ms):
                heapq.heappush(self.events, (release_ms, NOTICE))
            return
        waiter.failures += 1
        waiter.reasons.add(refused)
        delay_ms = self._delay_ms(waiter, refused, now_ms)
        if delay_ms is None or now_ms + delay_ms > waiter.arrives_ms + setup.budget_ms:
            if waiter in service.queue:
                service.queue.remove(waiter)
            return
        waiter.previous_ms = delay_ms
        self._at(number, now_ms + delay_ms)

    def _notice(self, now_ms: float) -> None:
        """The lock was released: the first in the queue hears of it, and keeps to the floor."""
        if not self.service.queue:
            return
        waiter = self.service.queue[0]
        heard_ms = now_ms + self.answers.uniform(*self.setup.answer_ms)
        sent_ms = max(heard_ms, waiter.tried_ms + self.settings.floor_ms)
        if sent_ms < waiter.next_ms:
            self._at(int(waiter.name[1:]), sent_ms)

    def _delay_ms(self, waiter: Waiter, refused: str, now_ms: float) -> int | None:
        if self.policy not in BY_RULES:
            return POLICIES[self.policy](waiter.rng, waiter.failures, waiter.previous_ms)
        context = _context(
            self.setup, self.service, waiter, refused, now_ms, self.seed,
            queue=self.policy in QUEUED, notices=self.policy == "rules, notices",
        )  # fmt: skip
        return decide(context, self.settings).retry_after_ms


NOTICE = -1  # in place of a waiter's number: word that the lock was released


def run(setup: Setup, policy: str, seed: int) -> dict[str, float]:
    """Figures of one policy under one seed."""
    return Run(setup, policy, seed).figures()


def _waiters(setup: Setup, seed: int) -> Iterator[Waiter]:
    rng = stream(seed, "bench/waiters")
    for number in range(setup.waiters):
        yield Waiter(
            f"w{number}",
            rng.uniform(0, setup.arrive_within_ms),
            rng.uniform(*setup.hold_ms),
            stream(seed, f"bench/policy/{number}"),
        )


def _context(
    setup: Setup,
    service: Service,
    waiter: Waiter,
    refused: str,
    now_ms: float,
    seed: int,
    *,
    queue: bool,
    notices: bool = False,
) -> Context:
    data: dict[str, Any] = {
        "lock_name": "bench",
        "requester_id": waiter.name,
        "current_holder_id": None,
        "lock_ttl_seconds": setup.ttl_ms / 1000,
        "elapsed_wait_seconds": (now_ms - waiter.arrives_ms) / 1000,
        "max_wait_budget_seconds": setup.budget_ms / 1000,
        "fairness_policy": "fifo" if queue else "no-starvation-guarantee",
        "failure_reason": refused,
        "error_code": None,
        "consecutive_failures": waiter.failures,
        "failure_reason_unchanged": len(waiter.reasons) == 1,
        "other_waiters_exist": True,
        "seed": seed,
    }
    if waiter.previous_ms:
        data["history"] = [{"decision": "retry", "retry_after_ms": waiter.previous_ms}]
    if queue and waiter in service.queue and service.holder and not service.down(now_ms):
        data["current_holder_id"] = service.holder.name
        data["holder_acquired_ago_seconds"] = (now_ms - service.since_ms) / 1000
        data["queue_position"] = service.queue.index(waiter) + 1
        data["observed_hold_seconds"] = sum(setup.hold_ms) / 2000
        data["release_notice"] = notices
    return context_from(data)


def figures(times: Sequence[tuple[float, float | None]], calls: int) -> dict[str, float]:
    """What a row says, from when each client arrived and was granted (ms; None: never)."""
    granted = sorted((end, began) for began, end in times if end is not None)
    waits = sorted(end - began for end, began in granted)
    passed = [
        sum(other > began for _, other in granted[:place])
        for place, (_, began) in enumerate(granted)
    ]
    return {
        "granted": len(granted),
        "gave_up": len(times) - len(granted),
        "p50_ms": quantile(waits, 0.5),
        "p99_ms": quantile(waits, 0.99),
        "max_ms": waits[-1] if waits else 0.0,
        "calls_per_grant": calls / max(1, len(granted)),
        "wasted_calls": calls - len(granted),
        "jain": jain(waits) or 0.0,
        "passed_by": sum(passed) / max(1, len(passed)),
    }


def mean(name: str, runs: Sequence[dict[str, float]]) -> dict[str, Any]:
    """The row of a policy: the mean of every figure over its runs."""
    return {"policy": name} | {k: sum(r[k] for r in runs) / len(runs) for k in runs[0]}


def compare(
    setup: Setup, seeds: int, first_seed: int = 0, policies: Sequence[str] = NAMES
) -> dict[str, Any]:
    """The mean of every figure over ``seeds`` seeds, a row per policy; JSON-able."""
    wanted = range(first_seed, first_seed + seeds)
    rows = [mean(name, [run(setup, name, seed) for seed in wanted]) for name in policies]
    return {"schema": "lockhavoc.retry-bench/1", "seed": first_seed, "seeds": seeds, "rows": rows}


def decisions_per_second(count: int = 7_000, rounds: int = 3) -> float:
    """How many contexts the rules decide in a second of processor time, queued and not.

    Of the best round: what else runs on the machine takes the caches, too.
    """
    setup = Setup()
    service, waiters = Service(setup), list(_waiters(setup, 0))
    for waiter in waiters[:20]:
        service.attempt(waiter, 10.0, in_order=True)
    contexts = [
        _context(setup, service, waiter, "lock held", 3_000.0, 0, queue=queue)
        for waiter in waiters[1:20]
        for queue in (True, False)
    ]
    best_s = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        for number in range(count):
            decide(contexts[number % len(contexts)])
        best_s = min(best_s, time.process_time() - began)
    return count / best_s


def as_markdown(found: dict[str, Any]) -> str:
    """A Markdown table of the rows."""
    head = (
        "| policy | granted | gave up | p50 s | p99 s | max s | calls a grant | Jain | passed by |"
    )
    lines = [head, "|---" * 9 + "|"]
    for row in found["rows"]:
        seconds = " | ".join(f"{row[k] / 1000:.2f}" for k in ("p50_ms", "p99_ms", "max_ms"))
        lines.append(
            f"| {row['policy']} | {row['granted']:.1f} | {row['gave_up']:.1f} | {seconds}"
            f" | {row['calls_per_grant']:.1f} | {row['jain']:.2f} | {row['passed_by']:.1f} |"
        )
    return "\n".join(lines)
