"""The points of an examination: signals, and how a worker ends."""

from __future__ import annotations

import signal
import time

from harness.conformance.bench import LONG_MS, Bench, Skipped, must
from harness.conformance.points import point
from harness.conformance.talk import Silent, Wrong
from harness.core.undo import catches_signal, marked_processes, process_name, process_state
from harness.workers import BLOCKED

SOON_S = 3.0  # a signal takes effect within milliseconds
LOOK_S = 0.005
QUIET_S = 0.3  # long enough for an answer that must not come


def _until(bench: Bench, name: str | None) -> None:
    """Waits until worker one calls itself so (None: until it is stopped)."""
    pid, deadline = bench.one.running.pid, time.monotonic() + SOON_S
    while (process_state(pid) != "T") if name is None else (process_name(pid) != name):
        if time.monotonic() > deadline:
            found = process_name(pid)
            raise Wrong(f"the worker calls itself {found!r}; by now it must be {name!r}")
        time.sleep(LOOK_S)


@point("stop", "a stopped worker takes its request when it goes on")
def stop(bench: Bench) -> None:
    bench.one.signal(signal.SIGSTOP)
    _until(bench, None)
    number = bench.one.send(
        "acquire", key=bench.key(), hold=bench.hold(), ttl_ms=LONG_MS, timeout_ms=0
    )
    resumed_ns = time.monotonic_ns()
    bench.one.signal(signal.SIGCONT)
    reply = bench.one.answer(number)
    must(reply, "ok")
    if reply.invoke < resumed_ns:
        raise Wrong("invoke lies before the worker was continued")


@point("block", "SIGUSR2 blocks the main thread under the name lh-blocked, SIGUSR1 frees it")
def block(bench: Bench) -> None:
    pid = bench.one.running.pid
    if not catches_signal(pid, signal.SIGUSR2):
        raise Skipped("it does not catch SIGUSR2, so the fault worker-block-loop is refused")
    before = process_name(pid)
    bench.one.signal(signal.SIGUSR2)
    _until(bench, BLOCKED)
    number = bench.one.send(
        "acquire", key=bench.key(), hold=bench.hold(), ttl_ms=LONG_MS, timeout_ms=0
    )
    try:
        bench.one.answer(number, QUIET_S)
    except Silent:
        pass
    else:
        raise Wrong("it answers a request while it is blocked")
    bench.one.signal(signal.SIGUSR1)
    _until(bench, before)
    must(bench.one.answer(number), "ok")


@point("interrupt", "SIGINT is ignored")
def interrupt(bench: Bench) -> None:
    bench.one.signal(signal.SIGINT)
    bench.hold_lock(bench.one)


@point("terminate", "SIGTERM ends it with status 0 within 3 s")
def terminate(bench: Bench) -> None:
    bench.one.signal(signal.SIGTERM)
    _status(bench.one.ended())


@point("terminate.stuck", "SIGTERM ends it also while an acquire waits")
def terminate_stuck(bench: Bench) -> None:
    _wait_in_acquire(bench)
    bench.one.signal(signal.SIGTERM)
    _status(bench.one.ended())


@point("end", "the end of input ends it with status 0 within 3 s, and leaves no process behind")
def end(bench: Bench) -> None:
    bench.hold_lock(bench.one)
    pid = bench.one.running.pid
    _status(bench.one.end())
    others = set(marked_processes(bench.mark)) - {bench.two.running.pid, pid}
    if others:
        raise Wrong(f"it ended, but left the processes {sorted(others)} behind")


@point("end.stuck", "the end of input ends it also while an acquire waits")
def end_stuck(bench: Bench) -> None:
    _wait_in_acquire(bench)
    _status(bench.one.end())


@point("end.held", "a worker that ends does not release its locks")
def end_held(bench: Bench) -> None:
    if bench.lease not in ("ttl", "none"):
        raise Skipped(f"lease.kind is {bench.lease}: its locks end with it")
    key, _, _ = bench.hold_lock(bench.one)
    bench.one.end()
    must(bench.acquire(bench.two, key)[0], "fail")


def _wait_in_acquire(bench: Bench) -> None:
    key, _, _ = bench.hold_lock(bench.two)
    bench.one.send("acquire", key=key, hold=bench.hold(), ttl_ms=LONG_MS, timeout_ms=60_000)
    bench.hold_lock(bench.two)  # by now the other one waits


def _status(code: int) -> None:
    if code != 0:
        raise Wrong(f"the exit status is {code}; 0 is right")
