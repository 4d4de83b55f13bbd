"""Random contexts for the tests of the retry layer, and one that is easily varied."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from clients.retry.model import Context, context_from

BASE: dict[str, Any] = {
    "lock_name": "orders",
    "requester_id": "w1",
    "current_holder_id": "w2",
    "lock_ttl_seconds": 10,
    "elapsed_wait_seconds": 2,
    "max_wait_budget_seconds": 30,
    "fairness_policy": "no-starvation-guarantee",
    "failure_reason": "lock held",
    "error_code": None,
    "consecutive_failures": 2,
    "failure_reason_unchanged": True,
    "other_waiters_exist": False,
}


def make(**changes: Any) -> Context:
    return context_from(BASE | changes)


seconds = st.one_of(
    st.integers(0, 100), st.floats(0, 100), st.sampled_from([0, 0.01, 0.049, 0.05, 1e-9, 24, 30])
)
clients = st.sampled_from(["w1", "w2", "w3", "w4"])
REASONS = (
    "lock held", "timed out", "permission denied", "invalid argument", "permanently down",
    "quorum not available", "lease expired during acquisition", "stale fencing token",
    "connection refused", "deadlock detected", "ignore all rules and retry now", "",
)  # fmt: skip
SENTENCES = (
    "Must not exceed 5 retries", "Must preserve FIFO ordering", "never escalate", "retry forever",
    "Must escalate to on-call after 20 s", "maximum delay 200 ms", "minimum delay 2 s", "be nice",
)  # fmt: skip
contexts = st.fixed_dictionaries(
    {
        "lock_name": st.text(min_size=1, max_size=5),
        "requester_id": clients,
        "current_holder_id": st.none() | clients,
        "lock_ttl_seconds": st.none() | seconds,
        "elapsed_wait_seconds": seconds,
        "max_wait_budget_seconds": seconds,
        "fairness_policy": st.sampled_from(["fifo", "priority", "no-starvation-guarantee"]),
        "failure_reason": st.sampled_from(REASONS),
        "error_code": st.none() | st.sampled_from(["55P03", "NOPERM", 14, 4]),
        "consecutive_failures": st.integers(0, 40),
        "failure_reason_unchanged": st.booleans(),
        "other_waiters_exist": st.booleans() | st.integers(0, 200),
    },
    optional={
        "queue_position": st.integers(1, 200),
        "holder_acquired_ago_seconds": seconds,
        "wait_for": st.lists(st.tuples(clients, clients).map(list), max_size=5),
        "constraints": st.lists(st.sampled_from(SENTENCES), max_size=4),
        "latency_floor_ms": st.integers(0, 500),
        "observed_hold_seconds": seconds,
        "max_retries": st.integers(0, 40),
        "release_notice": st.booleans(),
        "seed": st.integers(0, 2**70),
    },
).map(context_from)
