"""The points of an examination: locks that several may hold, readers or owners of permits."""

from __future__ import annotations

from typing import Any

from harness.conformance.bench import Bench, Skipped, must
from harness.conformance.points import point
from harness.conformance.talk import Talk, Wrong
from harness.core.history import OBSERVATIONS
from harness.core.messages import Reply

K = 2


def _acquire(bench: Bench, worker: Talk, key: str, **kind: Any) -> tuple[Reply, str]:
    """One try for a share of ``key``; kind: mode or k."""
    hold = bench.hold()
    return worker.ask("acquire", key=key, hold=hold, ttl_ms=60_000, timeout_ms=0, **kind), hold


@point("read", "readers share a lock; a writer is kept out by them, and they by a writer")
def read(bench: Bench) -> None:
    bench.need("read")
    key, holds = bench.key(), []
    for worker in (bench.one, bench.two):
        reply, hold = _acquire(bench, worker, key, mode="read")
        must(reply, "ok")
        holds.append((worker, hold))
    must(_acquire(bench, bench.one, bench.key())[0], "ok")  # of another lock
    must(_acquire(bench, bench.two, key)[0], "fail")
    for worker, hold in holds:
        must(worker.ask("release", key=key, hold=hold), "ok")
    reply, hold = bench.acquire(bench.two, key, timeout_ms=10_000)
    must(reply, "ok")
    must(_acquire(bench, bench.one, key, mode="read")[0], "fail")
    must(bench.two.ask("release", key=key, hold=hold), "ok")
    must(_acquire(bench, bench.one, key, mode="read")[0], "ok")


@point("permits", "as many holders as permits, and one more when one was given back")
def permits(bench: Bench) -> None:
    bench.need("permits")
    key = bench.key()
    first, hold = _acquire(bench, bench.one, key, k=K)
    must(first, "ok")
    must(_acquire(bench, bench.two, key, k=K)[0], "ok")
    must(_acquire(bench, bench.two, key, k=K)[0], "fail")
    must(bench.one.ask("release", key=key, hold=hold), "ok")
    must(_acquire(bench, bench.two, key, k=K)[0], "ok")


@point("wrong.kind", "a mode or k that is none, or both at once, is a fail and no observation")
def wrong_kind(bench: Bench) -> None:
    wrong: list[dict[str, Any]] = []
    if "read" in bench.powers:
        wrong += [{"mode": "upside-down"}, {"mode": "read", "k": K}]
    if "permits" in bench.powers:
        wrong += [{"k": 0}, {"mode": "read", "k": K}]
    if not wrong:
        raise Skipped("hello names neither the power read nor permits")
    for fields in wrong:
        reply, _ = _acquire(bench, bench.one, bench.key(), **fields)
        must(reply, "fail")
        if reply.error in OBSERVATIONS:
            raise Wrong(f"error is {reply.error!r}, which is an observation; nobody asked a server")
