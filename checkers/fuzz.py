"""Fuzzing the checkers against each other: monitors (batch and online), general engine, oracle.

    python -m checkers.fuzz --model lease --rounds 50000 --seed 1

Each round draws a small history (some legal, some spoilt, some noise; with unknown outcomes,
refusals, ties, reused owners), asks all of them, and demands one answer.  A monitor that says it is
not exact is not compared, but a violation it reports must be one.  A disagreement is shrunk by
dropping operations and printed as JSON lines, and the exit code is 1.

The brute-force oracle shares nothing with the others but the models; where its limit is passed it
is left out.  Rounds are numbered: the history of round i depends on seed, model and i alone.

Trap: agreement of all is no proof, since they share the models and the reader of the fields.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import click
import msgspec

from checkers.engine import frontier, partition, wgl
from checkers.engine.budget import Budget
from checkers.engine.work import Work
from checkers.fuzz_draw import DRAWS, Act, intervals_of, ops_of
from checkers.long import SEGMENTED
from checkers.models import make
from checkers.models.base import ACQUIRE, Model, determined
from checkers.monitors import belief, cas, lease, mutex, reentrant, resource, rwlock, semaphore
from checkers.monitors.span import Verdict
from checkers.oracle import exclusive, linearizable
from checkers.segments import check_segments
from checkers.stream import check_stream
from harness.core.history import Interval, Op
from harness.core.result import Valid

TTL = 10
_TOKEN_KINDS = frozenset({"token-inversion", "token-duplicate", "token-mismatch"})


class Anonymous(Model):
    """``k`` permits that anybody may give back (for comparison with the greedy monitor only)."""

    name = "anonymous-semaphore"
    init: Any = 0

    def __init__(self, k: int) -> None:
        self.k = k

    def prepare(self, op: Interval) -> Any:
        return None if op.outcome == "fail" else op.invoke.f

    def step(self, state: Any, op: Any) -> Any:
        if op == ACQUIRE:
            return state + 1 if state < self.k else None
        return state - 1 if state > 0 else None


class Target(msgspec.Struct, frozen=True):
    """What is compared: how to draw a history, the monitor, the model."""

    draw: Callable[[random.Random], list[Act]]
    monitor: Callable[[list[Interval]], Verdict]
    model: Model | None = None  # None: no question of orders, only ``oracle`` answers it
    online: str | None = None  # the verdict of ``check_stream`` that answers the same question
    oracle: Callable[[list[Interval]], bool] | None = None  # default: all orders for the model
    options: dict[str, Any] = {}  # of ``check_stream``


def targets() -> dict[str, Target]:
    """All comparisons by name."""
    return {
        "mutex": Target(DRAWS["mutex"], mutex.check, make("mutex"), "mutex"),
        "mutex-owners": Target(DRAWS["mutex-owners"], mutex.check, make("mutex"), "mutex"),
        "mutex-busy": Target(
            DRAWS["mutex-busy"], lambda ops: mutex.check(ops, busy=True), make("mutex")
        ),
        "fenced": Target(DRAWS["fenced"], mutex.check_fenced, make("fenced"), "fenced"),
        "reentrant": Target(DRAWS["reentrant"], reentrant.check, make("reentrant"), "reentrant"),
        "lease": Target(
            DRAWS["lease"],
            lambda ops: lease.check(ops, ttl_ns=TTL),
            make("lease", ttl_ns=TTL),
            "lease",
            options={"ttl_ns": TTL},
        ),
        "lease-drift": Target(
            DRAWS["lease"],
            lambda ops: lease.check(ops, ttl_ns=TTL, drift_ppm=200_000),
            make("lease", ttl_ns=TTL, drift_ppm=200_000),
        ),
        "lease-exact": Target(
            DRAWS["lease"],
            lambda ops: lease.check(ops, ttl_ns=TTL, property="exact"),
            make("lease", ttl_ns=TTL, property="exact"),
        ),
        "semaphore": Target(
            DRAWS["semaphore"],
            lambda ops: semaphore.check(ops, k=2),
            make("semaphore", k=2),
            "semaphore",
            options={"k": 2},
        ),
        "semaphore-anonymous": Target(
            DRAWS["anonymous"],
            lambda ops: semaphore.check(ops, k=2, anonymous=True),
            Anonymous(2),
        ),
        "rwlock": Target(DRAWS["rwlock"], rwlock.check, make("rwlock"), "rwlock"),
        "cas": Target(DRAWS["cas"], cas.check, make("cas"), "cas"),
        "store": Target(DRAWS["store"], resource.check, make("store"), "store"),
        "belief": _beliefs(enforced=True),
        "belief-naive": _beliefs(enforced=False),
    }


def _beliefs(*, enforced: bool) -> Target:
    """Believed windows, with and without the clients' own deadlines."""

    def monitor(ops: list[Interval]) -> Verdict:
        known, lost = _signals(ops)
        end_ns = max((e.time for op in ops for e in (op.invoke, op.complete) if e), default=0)
        return belief.check(known, ttl_ns=TTL, enforced=enforced, lost=lost, end_ns=end_ns)

    def oracle(ops: list[Interval]) -> bool:
        known, lost = _signals(ops)
        return exclusive(known, lost, ttl_ns=TTL, enforced=enforced)

    options = {"ttl_ns": TTL, "enforced": enforced}
    return Target(DRAWS["belief"], monitor, None, "belief", oracle, options)


def _signals(ops: list[Interval]) -> tuple[list[Interval], list[Op]]:
    """Operations and signals of loss, which ``intervals_of`` puts together."""
    lost = [op.invoke for op in ops if op.invoke.f == belief.LOST]
    return [op for op in ops if op.invoke.f != belief.LOST], lost


def answers(target: Target, ops: list[Interval]) -> dict[str, bool | str]:
    """Verdict of each checker; the monitor's is "not exact" where it says so and found nothing."""
    verdict = target.monitor(ops)
    found: dict[str, bool | str] = {}
    if verdict.valid is Valid.UNKNOWN:
        found["monitor"] = "not exact"
    else:
        found["monitor"] = verdict.valid is Valid.TRUE
    if target.online is not None:
        found["online"] = _online(target.online, target.options, ops)
    if target.oracle is not None:
        found["oracle"] = target.oracle(ops)
    if target.model is None:
        return found
    for name, strategy in (("wgl", wgl), ("frontier", frontier)):
        model = determined(target.model)
        valid: bool | None = True
        for part in partition(ops, model).values():
            budget = Budget(seconds=20.0, memory_bytes=1 << 30, nodes_max=1 << 30)
            one, _ = strategy.search(Work(part, model), budget)
            valid = one if one is not True else valid
            if valid is not True:
                break
        found[name] = "out of budget" if valid is None else valid
    found.setdefault("oracle", linearizable(ops, target.model))
    return found


def _online(name: str, options: dict[str, Any], ops: list[Interval]) -> bool | str:
    """What the online monitors say of these operations, written as lines."""
    events = [event for op in ops for event in (op.invoke, op.complete) if event is not None]
    events.sort(key=lambda event: event.index)
    lines = [msgspec.json.encode(event) for event in events]
    if name in SEGMENTED:  # cut wherever that is allowed
        verdict = check_segments(lines, name, piece=1, **options)
    else:
        verdict = check_stream(lines, **options)[name]
    if name == "lease" and any(anomaly.kind in _TOKEN_KINDS for anomaly in verdict.anomalies):
        return "not asked"
    if verdict.valid is not Valid.UNKNOWN:
        return verdict.valid is Valid.TRUE
    return "not exact" if verdict.unsure else "nothing there"


def disagree(found: dict[str, bool | str]) -> bool:
    """Whether two of the checkers said different things."""
    return len({answer for answer in found.values() if isinstance(answer, bool)}) > 1


def shrink(target: Target, acts: list[Act]) -> list[Act]:
    """Drops operations as long as the disagreement stays."""
    changed = True
    while changed:
        changed = False
        for i in range(len(acts) - 1, -1, -1):
            fewer = acts[:i] + acts[i + 1 :]
            if disagree(answers(target, intervals_of(fewer))):
                acts, changed = fewer, True
    return acts


def fuzz(
    name: str, rounds: int, seed: int, *, first: int = 0
) -> tuple[dict[str, int], list[Act] | None]:
    """(counts, a shrunk disagreement or None)."""
    target = targets()[name]
    counts = {"rounds": 0, "valid": 0, "invalid": 0, "not exact": 0, "operations": 0}
    for number in range(first, first + rounds):
        acts = target.draw(random.Random(f"{seed}/{name}/{number}"))
        found = answers(target, intervals_of(acts))
        counts["rounds"] += 1
        counts["operations"] += len(acts)
        counts["valid" if found["oracle"] else "invalid"] += 1
        counts["not exact"] += found["monitor"] == "not exact"
        if disagree(found):
            return counts, shrink(target, acts)
    return counts, None


@click.command()
@click.option("--model", default="all", help="what to compare; 'all' for everything")
@click.option("--rounds", default=50_000, show_default=True, help="histories per model")
@click.option("--seed", default=1, show_default=True)
@click.option("--first", default=0, help="number of the first round")
def main(model: str, rounds: int, seed: int, first: int) -> None:
    """Compares monitor, engine and oracle on random small histories."""
    known = targets()
    names = list(known) if model == "all" else [model]
    if any(name not in known for name in names):
        raise click.UsageError(f"--model is {model!r}, it must be one of {', '.join(known)}")
    failed = False
    for name in names:
        began = time.process_time()
        counts, bad = fuzz(name, rounds, seed, first=first)
        spent_s = time.process_time() - began
        text = ", ".join(f"{count} {what}" for what, count in counts.items())
        click.echo(f"{name}: {text}, {spent_s:.0f} s of CPU, {'DISAGREE' if bad else 'all agree'}")
        if bad is not None:
            failed = True
            for op in ops_of(bad):
                click.echo(msgspec.json.encode(op).decode())
            round_ = first + counts["rounds"] - 1
            click.echo(f"round {round_}: {answers(known[name], intervals_of(bad))}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
