"""Whether the workers of a scenario are users of one process, and whether a worker serves such.

sharing = sharing_of(scenario)          # None, or what a worker's ``open`` is told
check_served(hello, sharing)            # RefusedError, before any server was started
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.core.errors import RefusedError
from harness.scenario import Scenario
from harness.workloads.registry import WORKLOADS


def sharing_of(scenario: Scenario) -> dict[str, Any] | None:
    """``sharing`` of a worker's ``open`` (docs/reference/worker-protocol.md), None for workers
    that are processes of their own."""
    workload = scenario.workload
    kind = WORKLOADS.load(workload.kind)()
    sharing = kind.sharing(kind.settle(workload.params))
    if sharing is None:
        return None
    keys = [f"k{number}" for number in range(workload.keys)]
    return {**sharing, "keys": keys, "ttl_ms": workload.ttl_ms}


def together_of(scenario: Scenario) -> int:
    """How many workers, next to each other, live in one process."""
    sharing = sharing_of(scenario)
    return 1 if sharing is None else int(sharing["together"])


def check_served(hello: Mapping[str, Any], sharing: Mapping[str, Any]) -> None:
    """RefusedError if a worker does not say in its hello that it can serve such users."""
    library, users, shares = hello.get("library"), hello.get("users"), hello.get("shares")
    reasons = []
    if sharing["users"] not in (users or []):
        can = f"serves users that are {' or '.join(users)}" if users else "serves one user alone"
        reasons.append(f"users is {sharing['users']!r}, but the worker of {library!r} {can}")
    for what in [sharing["share"], *(["pool"] if sharing.get("pool") else [])]:
        if what not in (shares or []):
            can = f"can share: {', '.join(shares)}" if shares else "can share nothing"
            reasons.append(f"what they share is {what!r}, but users of {library!r} {can}")
    if reasons:
        raise RefusedError(f"{library} has no users as this workload wants them", reasons)
