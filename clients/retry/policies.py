"""The back-off policies that people use today, to compare the rules with.

    POLICIES["redis-py"](rng, failures=3, previous_ms=100)      # next delay in ms; None: gives up

Sources: redis-py ``Lock(sleep=0.1)``; redlock-py ``retry_delay=200, retry_count=3`` with jitter of
up to the delay; the other formulas after Brooker, "Exponential Backoff And Jitter" (AWS, 2015).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

BASE_MS, CAP_MS = 100, 10_000
Policy = Callable[[Random, int, int], int | None]


def _constant(rng: Random, failures: int, previous_ms: int) -> int:
    return 250


def _redis_py(rng: Random, failures: int, previous_ms: int) -> int:
    return 100


def _linear(rng: Random, failures: int, previous_ms: int) -> int:
    return min(CAP_MS, BASE_MS * failures)


def _exponential(rng: Random, failures: int, previous_ms: int) -> int:
    return min(CAP_MS, BASE_MS << min(failures - 1, 20))


def _full_jitter(rng: Random, failures: int, previous_ms: int) -> int:
    return rng.randint(0, _exponential(rng, failures, previous_ms))


def _decorrelated(rng: Random, failures: int, previous_ms: int) -> int:
    return min(CAP_MS, rng.randint(BASE_MS, 3 * max(previous_ms, BASE_MS)))


def _redlock(rng: Random, failures: int, previous_ms: int) -> int | None:
    return None if failures >= 3 else rng.randint(0, 200)


POLICIES: dict[str, Policy] = {
    "constant 250 ms": _constant,
    "redis-py": _redis_py,
    "linear": _linear,
    "exponential": _exponential,
    "full jitter": _full_jitter,
    "decorrelated": _decorrelated,
    "redlock-py": _redlock,
}
