"""The points of an examination: the resource, slow and lost answers, no way to the servers."""

from __future__ import annotations

import time

from harness.conformance.bench import Bench, Skipped, elapsed_since, must
from harness.conformance.points import point
from harness.conformance.talk import Silent, Wrong
from harness.core.clock import NS_PER_MS
from harness.core.messages import Reply

SLOW_MS = 300
NEVER_MS = 60_000
PATIENCE_S = 15.0  # for a library's own time limit; some have none
BACK_S = 20.0  # until a client that lost its connection works again


def _reopened(bench: Bench, mode: str) -> None:
    """Worker one with a resource; Skipped if it does not speak to any."""
    bench.close(bench.one)
    must(bench.open(bench.one, resource=mode), "ok")
    asked = bench.one.ask("read", key=bench.key(), hold=bench.hold())
    if asked.type == "fail" and "do" in (asked.error or "").split():
        raise Skipped(f"it has no read and write ({asked.error}): only for resource.mode none")
    must(asked, "ok")


@point("write", "writes and reads go to the resource, with the version last seen as expect")
def write(bench: Bench) -> None:
    _reopened(bench, "cas")
    key, hold, _ = bench.hold_lock(bench.one)
    must(bench.one.ask("read", key=key, hold=hold), "ok")
    for value in ("first", "second"):
        reply = bench.one.ask("write", key=key, hold=hold, value=value)
        must(reply, "ok")
        if not isinstance(reply.value, dict) or set(reply.value) != {"version", "seq"}:
            raise Wrong(f"value is {reply.value!r}; it must be an object with version and seq")
    read = bench.one.ask("read", key=key, hold=hold)
    must(read, "ok")
    if not isinstance(read.value, dict) or read.value.get("value") != "second":
        raise Wrong(f"read gives {read.value!r} after 'second' was written")
    old = bench.one.ask("write", key=key, hold=hold, value="late", options={"expect": 1})
    must(old, "fail", "mismatch")


@point("write.stale", "a write with an old token is a fail with the word stale")
def stale(bench: Bench) -> None:
    _reopened(bench, "fenced")
    key, hold = bench.key(), bench.hold()
    must(bench.one.ask("write", key=key, hold=hold, token=8, value="new"), "ok")
    must(bench.one.ask("write", key=key, hold=hold, token=7, value="old"), "fail", "stale")


@point("write.gone", "without a resource to connect to, a write is a fail and no observation")
def gone(bench: Bench) -> None:
    _reopened(bench, "unfenced")
    key, hold = bench.key(), bench.hold()
    must(bench.one.ask("write", key=key, hold=hold, value="1"), "ok")
    bench.resource("unfenced").kill()
    try:
        reply = bench.one.ask("write", key=key, hold=hold, value="2")
        if reply.type == "ok" or reply.error in ("stale", "mismatch"):
            raise Wrong(f"the resource is dead, and the write is {reply.type} {reply.error!r}")
        reply = bench.one.ask("write", key=key, hold=hold, value="3")
        must(reply, "fail")
    finally:
        bench.resource("unfenced").restart()


@point("slow", "the stamps enclose a slow answer of the server")
def slow(bench: Bench) -> None:
    with bench.late(bench.one, SLOW_MS):
        _, _, reply = bench.hold_lock(bench.one)
    took_ms = (reply.complete - reply.invoke) / NS_PER_MS
    if took_ms < SLOW_MS * 0.9:
        raise Wrong(f"the servers answer {SLOW_MS} ms late; by its stamps it took {took_ms:.0f} ms")


@point("unknown.acquire", "an acquire whose answer never came is info, or surely without effect")
def unknown_acquire(bench: Bench) -> None:
    key = bench.key()
    bench.hold_lock(bench.one)  # it has a connection, so that its request goes out
    with bench.late(bench.one, NEVER_MS):
        reply, _ = _limited(bench, "acquire", key, bench.hold())
    if reply.type == "ok":
        raise Wrong("no answer came from the servers, and it says that it was granted")
    if reply.type == "fail":
        if reply.error == "busy":
            raise Wrong("no answer came from the servers, and it says busy")
        must(bench.acquire(bench.two, key, timeout_ms=3_000)[0], "ok")


@point("unknown.release", "a release whose answer never came is info, and no observation")
def unknown_release(bench: Bench) -> None:
    key, hold, _ = bench.hold_lock(bench.one)
    with bench.late(bench.one, NEVER_MS):
        reply, _ = _limited(bench, "release", key, hold)
    if reply.type == "ok" or reply.error == "not-held":
        said = reply.error or reply.type
        raise Wrong(f"no answer came from the servers, and it says {said!r}")
    if reply.type == "fail" and bench.acquire(bench.two, key)[0].type == "ok":
        raise Wrong("it says that it surely did not release the lock, and the lock is free")


def _limited(bench: Bench, do: str, key: str, hold: str) -> tuple[Reply, float]:
    start = time.monotonic()
    try:
        fields = {"ttl_ms": NEVER_MS, "timeout_ms": 1000} if do == "acquire" else {}
        reply = bench.one.ask(do, key=key, hold=hold, within_s=PATIENCE_S, **fields)
    except Silent as error:
        if bench.one.running.poll() is not None:
            raise
        bench.one.kill()  # it waits in the library, and the next point wants an answer
        raise Skipped(
            f"no reply within {PATIENCE_S:.0f} s: the library waits without limit; if it has a "
            "time limit, give it with --option"
        ) from error
    return reply, elapsed_since(start)


@point("severed", "without a way to any server it neither grants nor dies, and works again after")
def severed(bench: Bench) -> None:
    with bench.severed(bench.one):
        reply, _ = _limited(bench, "acquire", bench.key(), bench.hold())
        if reply.type == "ok" or reply.error == "busy":
            raise Wrong(f"no server can be reached, and it says {reply.error or reply.type!r}")
        bench.one.ask("close", within_s=PATIENCE_S)
    bench.unopened.add(bench.one)
    deadline = time.monotonic() + BACK_S
    must(bench.open(bench.one), "ok")
    while (reply := bench.acquire(bench.one, bench.key(), timeout_ms=1000)[0]).type != "ok":
        if time.monotonic() > deadline:
            raise Wrong(f"{BACK_S:.0f} s after the way was open again: {reply.type} {reply.error}")
