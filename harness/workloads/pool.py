"""pool: clients that draw a connection from a pool, as web applications do (K14, K24).

    [workload]
    kind = "pool"
    workers = 8                                       # threads in all
    params = { together = 4, size = 3, per = "operation" }

``together`` threads of one process have a client whose pool has ``size`` connections.  ``per`` says
how long one is kept: for one call of the library (``operation``: the lock may be got on one and
given back on another) or for the whole section.  ``wait_ms``: how long a thread waits for one.

Trap: in a pool as large as its users nobody ever waits for a connection; then only the first of
its two harms, the wrong session, can show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.workloads.base import Kind
from harness.workloads.shared import TOGETHER, indivisible
from nemesis.params import Parameter


class Pool(Kind):
    """Critical sections of threads who draw connections from one pool."""

    kind = "pool"
    says = "critical sections of threads that draw their connections from one pool"
    shows = "locks left in another session, waiters who keep the holder from a connection"
    parameters = (
        TOGETHER,
        Parameter("size", int, "connections", 2, "in the pool of a process", 1, 64),
        Parameter(
            "per", str, "", "operation", "what a connection is drawn for",
            choices=("operation", "section"),
        ),
        Parameter("wait_ms", int, "ms", 500, "longest wait for a connection", 0, 60_000),
    )  # fmt: skip

    def misfits(self, params: Mapping[str, Any], *, workers: int, keys: int) -> list[str]:
        return indivisible(int(params["together"]), workers)

    def sharing(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        pool = {name: params[name] for name in ("size", "per", "wait_ms")}
        together = int(params["together"])
        return {"users": "threads", "together": together, "share": "connection", "pool": pool}
