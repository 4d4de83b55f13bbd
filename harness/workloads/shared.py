"""shared: several users of one lock object, or of one client, inside one process (K02).

    [workload]
    kind = "shared"
    workers = 4                                       # users in all
    params = { users = "threads", together = 2, share = "object" }

Users are threads, asyncio tasks, or a worker and the children that it forked; each is a logical
process of the history, so that two of them inside at once are two holders.  ``share``: what is
one for all of them, the lock object of each key or only the client (its connection).

Trap: what breaks is the owner's identity, so it shows where a lease runs out with one user at work
and another of the same object waiting, or where the server knows the connection alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.workloads.base import Kind
from nemesis.params import Parameter

USERS = ("threads", "tasks", "fork")
TOGETHER = Parameter("together", int, "users", 2, "in one process (a divisor of workers)", 2, 16)


def indivisible(together: int, workers: int) -> list[str]:
    """What is wrong with so many workers in processes of so many users."""
    if workers % together:
        return [
            f"together: {together} users a process do not make {workers} workers; "
            f"use workload.workers = {-(-workers // together) * together}"
        ]
    return []


class Shared(Kind):
    """Critical sections as the scenario's times say, by users who share an object or a client."""

    kind = "shared"
    says = "critical sections of several users of one client inside one process"
    shows = "releases of another user's hold, locks that two users of one connection both get"
    parameters = (
        Parameter("users", str, "", "threads", "what the users of a process are", choices=USERS),
        TOGETHER,
        Parameter(
            "share", str, "", "object", "what is one for all of them",
            choices=("object", "connection"),
        ),
    )  # fmt: skip

    def misfits(self, params: Mapping[str, Any], *, workers: int, keys: int) -> list[str]:
        return indivisible(int(params["together"]), workers)

    def sharing(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        return {name: params[name] for name in ("users", "together", "share")}
