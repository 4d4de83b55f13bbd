"""The points of an examination: what a lock is, and what its lease, tokens and signals are.

They judge the worker by the answers of a right lock; a library that is broken fails some of them,
and then it is the library that one learns about.
"""

from __future__ import annotations

import signal
import time

from harness.conformance.bench import (
    LEASE_END_S,
    LONG_MS,
    Bench,
    Skipped,
    elapsed_since,
    must,
)
from harness.conformance.points import point
from harness.conformance.talk import Silent, Wrong
from harness.core.clock import NS_PER_MS
from harness.core.messages import Reply

WAIT_MS = 400
AT_ONCE_S = 5.0  # an acquire that must not wait, on a busy machine


@point("acquire", "a free lock is granted, with an owner and a token or null")
def acquire(bench: Bench) -> None:
    _, _, reply = bench.hold_lock(bench.one)
    value = reply.value
    if not isinstance(value, dict) or not set(value) <= {"owner", "token", "nodes"}:
        raise Wrong(f"value is {value!r}; it must be an object with owner, token and maybe nodes")
    if not isinstance(value.get("owner"), str) or not value["owner"]:
        raise Wrong(f"value.owner is {value.get('owner')!r}; it must be a string")
    token = value.get("token")
    if "fenced" in bench.powers and type(token) is not int:
        raise Wrong(f"hello names the power fenced, but value.token is {token!r}")
    if "fenced" not in bench.powers and token is not None:
        raise Wrong(f"value.token is {token!r}, but hello does not name the power fenced")
    names = value.get("nodes")
    if names is not None and bench.cluster is not None and not set(names) <= set(
        bench.cluster.nodes
    ):  # fmt: skip
        raise Wrong(f"value.nodes is {names!r}; it must hold names of the nodes in open")


@point("acquire.text", "keys are any text in UTF-8, and other keys are other locks")
def text_keys(bench: Bench) -> None:
    base = bench.key()
    for key in (f"{base} Schlüssel ✓", f"{base} Schlüssel ✗"):
        must(bench.acquire(bench.one, key)[0], "ok")
        _refused(bench.acquire(bench.two, key)[0])


@point("acquire.held", "a held lock is refused at once when timeout_ms is 0")
def held(bench: Bench) -> None:
    key, _, _ = bench.hold_lock(bench.one)
    start = time.monotonic()
    reply, _ = bench.acquire(bench.two, key)
    _refused(reply)
    if elapsed_since(start) > AT_ONCE_S:
        raise Wrong(f"timeout_ms is 0, and it waited {elapsed_since(start):.1f} s")


@point("acquire.wait", "a held lock is refused after timeout_ms, and the stamps enclose the wait")
def waits(bench: Bench) -> None:
    key, _, _ = bench.hold_lock(bench.one)
    reply, _ = bench.acquire(bench.two, key, timeout_ms=WAIT_MS)
    _refused(reply)
    waited_ms = (reply.complete - reply.invoke) / NS_PER_MS
    if waited_ms < WAIT_MS / 2:
        raise Wrong(f"timeout_ms is {WAIT_MS}, and by its stamps it waited {waited_ms:.0f} ms")
    if waited_ms > WAIT_MS + AT_ONCE_S * 1000:
        raise Wrong(f"timeout_ms is {WAIT_MS}, and it waited {waited_ms:.0f} ms")


@point("acquire.woken", "a waiter gets the lock when it is released")
def woken(bench: Bench) -> None:
    key, hold, _ = bench.hold_lock(bench.one)
    number = bench.two.send(
        "acquire", key=key, hold=bench.hold(), ttl_ms=LONG_MS, timeout_ms=20_000
    )
    bench.hold_lock(bench.one)  # by now the other one waits
    must(bench.one.ask("release", key=key, hold=hold), "ok")
    must(bench.two.answer(number, 25.0), "ok")


@point("acquire.left", "a refused waiter leaves nothing that stands in the way")
def left(bench: Bench) -> None:
    key, hold, _ = bench.hold_lock(bench.one)
    _refused(bench.acquire(bench.two, key, timeout_ms=WAIT_MS)[0])
    must(bench.one.ask("release", key=key, hold=hold), "ok")
    must(bench.acquire(bench.one, key, timeout_ms=10_000)[0], "ok")


@point("release", "a released lock is free, and releasing it twice is a fail")
def release(bench: Bench) -> None:
    key, hold, _ = bench.hold_lock(bench.one)
    must(bench.one.ask("release", key=key, hold=hold), "ok")
    must(bench.acquire(bench.two, key)[0], "ok")
    must(bench.one.ask("release", key=key, hold=hold), "fail")
    _refused(bench.acquire(bench.one, key)[0])


@point("release.unknown", "a hold that was never granted is a fail, but not the word not-held")
def release_unknown(bench: Bench) -> None:
    for do in ("release", *(power for power in ("renew", "believes") if power in bench.powers)):
        reply = bench.one.ask(do, key=bench.key(), hold=bench.hold(), ttl_ms=1000)
        must(reply, "fail")
        if reply.error == "not-held":
            raise Wrong(f"{do}: error is not-held, but nobody asked a server")


@point("renew", "renew makes the lease of a held lock longer")
def renew(bench: Bench) -> None:
    bench.need("renew")
    key, hold, _ = bench.hold_lock(bench.one)
    must(bench.one.ask("renew", key=key, hold=hold, ttl_ms=LONG_MS), "ok")
    _refused(bench.acquire(bench.two, key)[0])


@point("believes", "believes is true for a held lock")
def believes(bench: Bench) -> None:
    bench.need("believes")
    key, hold, _ = bench.hold_lock(bench.one)
    reply = bench.one.ask("believes", key=key, hold=hold)
    must(reply, "ok")
    if reply.value is not True:
        raise Wrong(f"value is {reply.value!r}; the lock was granted a moment ago and is held")


@point("token", "tokens of a key grow from grant to grant, whoever gets it")
def tokens(bench: Bench) -> None:
    bench.need("fenced")
    key, seen = bench.key(), []
    for worker in (bench.one, bench.two, bench.one):
        reply, hold = bench.acquire(worker, key, timeout_ms=5_000)
        must(reply, "ok")
        seen.append(reply.value["token"])
        must(worker.ask("release", key=key, hold=hold), "ok")
    if seen != sorted(set(seen)):
        raise Wrong(f"the tokens of three grants, one after the other, are {seen}")


@point("lease.end", "the lock of a stopped holder is free when its lease is over, not before")
def lease_end(bench: Bench) -> None:
    if bench.lease in ("connection", "none"):
        raise Skipped(f"lease.kind is {bench.lease}: it does not end by itself")
    key, hold, first = bench.hold_lock(bench.one, bench.short_ms)
    bench.one.signal(signal.SIGSTOP)
    try:
        taken, _ = bench.acquire(bench.two, key, timeout_ms=int(LEASE_END_S * 1000))
    finally:
        bench.one.signal(signal.SIGCONT)
    must(taken, "ok")
    lasted_ms = (taken.complete - first.invoke) / NS_PER_MS
    if bench.lease == "ttl" and lasted_ms < bench.short_ms:
        raise Wrong(f"ttl_ms was {bench.short_ms}, and it was granted again after {lasted_ms:.0f}")
    if "fenced" in bench.powers and taken.value["token"] <= first.value["token"]:
        raise Wrong(f"the token {taken.value['token']} follows {first.value['token']}")
    if "signals-loss" in bench.powers:
        _told(bench, key, hold)
    for do in ("renew", "release"):
        if do == "renew" and "renew" not in bench.powers:
            continue
        reply = bench.one.ask(do, key=key, hold=hold, ttl_ms=bench.short_ms)
        if reply.type == "ok":
            raise Wrong(f"{do} of a lost lock is ok, while the other worker holds it")
    _refused(bench.acquire(bench.one, key)[0])


def _told(bench: Bench, key: str, hold: str) -> None:
    """A session that ends takes all holds of its client along, and each is told of."""
    while True:
        try:
            event = bench.one.event("lost", LEASE_END_S)
        except Silent as error:
            raise Wrong(
                f"hello names signals-loss, but no such event lost came ({error})"
            ) from error
        if (event.key, event.hold) == (key, hold) and event.complete:
            return
        if bench.lease == "ttl" or event.hold == hold or not event.complete:
            raise Wrong(f"lost must name key {key!r}, hold {hold!r} and the instant (complete)")


@point("lease.kill", "the lock of a killed holder is free as its lease says; a new worker works")
def lease_kill(bench: Bench) -> None:
    key, _, _ = bench.hold_lock(bench.one, bench.short_ms)
    bench.one.kill()
    bench.ready()
    wait_ms = 0 if bench.lease == "none" else int(LEASE_END_S * 1000)
    reply, _ = bench.acquire(bench.two, key, timeout_ms=wait_ms)
    if bench.lease == "none":
        _refused(reply)
    else:
        must(reply, "ok")
    bench.hold_lock(bench.one)


def _refused(reply: Reply) -> None:
    """A fail that may be busy, but none of the words that others say."""
    must(reply, "fail")
    if reply.error in ("not-held", "stale", "mismatch"):
        raise Wrong(f"a refused acquire says {reply.error!r}, which is the word of other requests")
