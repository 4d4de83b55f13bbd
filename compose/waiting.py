"""Waiting for a condition with a bound, on an injected clock.

    wait_until(lambda: not container.state().running, timeout_s=20)   # True, or False: too late

Trap: a condition that itself takes long is asked once more after the bound has passed, so that a
slow look cannot turn a state that was reached into a failure.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.core import limits
from harness.core.clock import NS_PER_S, Clock, MonotonicClock, ms


def wait_until(
    condition: Callable[[], bool], *, timeout_s: float, clock: Clock | None = None
) -> bool:
    """Asks every LOOK_AGAIN_MS until the condition holds; False if it did not in time."""
    clock = clock or MonotonicClock()
    deadline_ns = clock.now() + round(timeout_s * NS_PER_S)
    while True:
        late = clock.now() >= deadline_ns
        if condition():
            return True
        if late:
            return False
        clock.sleep_until(min(deadline_ns, clock.now() + ms(limits.LOOK_AGAIN_MS)))
