"""The interleavings of rules, on the bench: each fails by AssertionError where the failure shows.

    check("A-ID-1", "app/worker.py", ["rebuild"])

Traps: a check that did not get to the point says so and fails; it never passes for want of a lock.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from checkers.audit.generate.bench import (
    DAY_S,
    LEASE_MS,
    OF_LOCKS,
    OTHER,
    Bench,
    Stopped,
    load_file,
    server,
)


def check(rule: str, path: str, scopes: Sequence[str]) -> None:
    """Runs the interleaving of a rule; AssertionError where the failure shows."""
    with server() as port:
        CHECKS[rule](port, path, scopes)


def _owner_survives(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    bench.steal = True
    bench.run(scopes)
    assert bench.stolen, "nothing was released or renewed: give ARGUMENTS that reach it"
    assert bench.admin.get(bench.stolen) == OTHER, "the lock of its present owner was changed"
    left_ms = int(str(bench.admin.pttl(bench.stolen)))
    assert left_ms > LEASE_MS - 60_000, "the lease of the present owner was changed"


def _fresh_token(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    bench.load = _once(load_file)  # two acquisitions of one process
    tokens = []
    for _ in range(2):
        bench.admin.flushall()
        bench.taken.clear()
        bench.run(scopes)
        tokens += list(bench.taken.values())
    assert len(tokens) == 2, "the lock was not taken twice: give ARGUMENTS that reach it"
    assert tokens[0] != tokens[1], f"two acquisitions are one owner: {tokens[0]!r}"


def _once(load: Callable[[str], Any]) -> Callable[[str], Any]:
    kept: list[Any] = []

    def loaded(path: str) -> Any:
        if not kept:
            kept.append(load(path))
        return kept[0]

    return loaded


def _own_key(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    bench.run(scopes)
    assert bench.taken, "no lock was taken: give ARGUMENTS that reach it"
    data = [c for c in bench.sent if c[0] not in OF_LOCKS and (*c, "")[1] in bench.taken]
    assert not data, f"the key of the lock is used for data: {data[0]}"


def _learned(port: int, path: str, scopes: Sequence[str]) -> Bench:
    """A bench on which the locks that these functions take are somebody else's already."""
    first = Bench(port, path)
    first.run(scopes)
    assert first.taken, "no lock was taken: give ARGUMENTS that reach it"
    bench = Bench(port, path)
    for key in first.taken:
        bench.admin.set(key, OTHER, px=LEASE_MS)
    return bench


def _not_entered(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = _learned(port, path, scopes)
    bench.run(scopes)
    assert not bench.reached, f"line {bench.reached[0]} ran although somebody else has the lock"


def _closed_when_down(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    bench.asked = True
    bench.run(scopes)
    assert not bench.reached or bench.taken, f"line {bench.reached[0]} ran without any lock"
    bench = Bench(port, path)
    bench.down = True
    bench.run(scopes)
    assert not bench.reached, f"line {bench.reached[0]} ran although the server was away"


def _no_error(port: int, path: str, scopes: Sequence[str]) -> None:
    error = Bench(port, path).run(scopes)
    assert error is None, f"alone, and still: {error!r}"


def _lease(low_ms: int, high_ms: float) -> Callable[[int, str, Sequence[str]], None]:
    def checked(port: int, path: str, scopes: Sequence[str]) -> None:
        bench = Bench(port, path)
        bench.run(scopes)
        assert bench.ttls_ms, "no lock was taken: give ARGUMENTS that reach it"
        for ttl_ms in bench.ttls_ms:
            assert ttl_ms >= 0, "just granted, and the lock has no lease"
            assert low_ms <= ttl_ms <= high_ms, f"the lease is {ttl_ms} ms"

    return checked


def _no_clock(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    bench.run(scopes)
    assert bench.taken, "no lock was taken: give ARGUMENTS that reach it"
    for token in bench.taken.values():
        with contextlib.suppress(ValueError):
            assert abs(float(token) - time.time()) > DAY_S, f"a wall clock is the value: {token!r}"


def _given_back(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    bench.fail_work = True
    bench.run(scopes)
    assert bench.taken, "no lock was taken: give ARGUMENTS that reach it"
    left = [key for key in bench.taken if bench.admin.exists(key)]
    assert not left, f"the work raised and {left[0]!r} stays locked"


def _random_pauses(port: int, path: str, scopes: Sequence[str]) -> None:
    runs = []
    for _ in range(2):
        bench = _learned(port, path, scopes)
        bench.sleeps_max = 6
        bench.run(scopes)
        runs.append(bench.sleeps)
    assert len(runs[0]) > 2, "it did not ask again"
    assert runs[0] != runs[1], f"all waiters pause alike: {runs[0][:6]}"


def _ends(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = _learned(port, path, scopes)
    error = bench.run(scopes)
    assert not isinstance(error, Stopped), f"still asking after {len(bench.sleeps)} pauses"


def _told_apart(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    bench.down = True
    error = bench.run(scopes)
    assert error is not None, "the server was away, and the answer is as if the lock were busy"


def _one_order(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    for scope in scopes:
        bench.admin.flushall()
        bench.taken.clear()
        bench.run([scope])
    twice = [pair for pair in sorted(bench.nested) if pair[::-1] in bench.nested]
    assert not twice, f"taken in both orders: {twice[0]}"


def _left_alone(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    for key in ("lock:of-another", "lease:of-another"):
        bench.admin.set(key, OTHER, px=LEASE_MS)
    bench.run(scopes)
    for key in ("lock:of-another", "lease:of-another"):
        assert bench.admin.get(key) == OTHER, f"{key} of another was removed at the start"


def _read_again(port: int, path: str, scopes: Sequence[str]) -> None:
    bench = Bench(port, path)
    bench.run(scopes)
    known: set[str] = set()
    for command in bench.sent:
        name, key = (*command, "")[:2]
        if name == "SETNX" or (name == "SET" and "NX" in command):
            known = set()  # what was read before the grant is old
        elif name in ("GET", "EXISTS", "HGET"):
            known.add(key)
        elif name in ("SET", "SETEX", "HSET"):
            assert key in known, f"{key} is written under the lock without another look"


CHECKS: dict[str, Callable[[int, str, Sequence[str]], None]] = {
    "A-ID-1": _owner_survives, "A-ID-2": _fresh_token, "A-ID-3": _fresh_token,
    "A-ID-5": _own_key, "A-ID-6": _not_entered, "A-ID-7": _closed_when_down,
    "A-ID-9": _no_error, "A-LEASE-1": _lease(0, float("inf")),
    "A-LEASE-2": _lease(0, float("inf")), "A-LEASE-3": _lease(500, 4 * 3_600_000),
    "A-LEASE-7": _owner_survives, "A-LEASE-8": _no_clock, "A-REL-1": _given_back,
    "A-RETRY-1": _random_pauses, "A-RETRY-2": _ends, "A-RETRY-4": _told_apart,
    "A-RETRY-5": _one_order, "A-REC-2": _left_alone, "A-REC-3": _read_again,
}  # fmt: skip
