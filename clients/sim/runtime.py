"""The runtime ``sim``: no process, no socket, a run of minutes in milliseconds.

    SimRuntime().up("sim", {}, workers=4, run_dir=path, ledger=ledger)     # a SimCluster

A run in virtual time also needs simulated workers and the simulated clock, so the harness calls
``clients.sim.world.build``, which makes all of them; ``up`` is the cluster alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clients.sim.clock import SimClock
from clients.sim.cluster import SimCluster
from harness.core.errors import RefusedError
from harness.core.protocols import Ledger

BACKENDS = ("sim", "redis-single")


class SimRuntime:
    """Implements ``protocols.Runtime``."""

    name = "sim"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def can(self, backend: str) -> str | None:
        """Only the single Redis-like server is simulated."""
        if backend in BACKENDS:
            return None
        return f"backend {backend!r} is not simulated; use one of: {', '.join(BACKENDS)}"

    def up(
        self,
        backend: str,
        options: Mapping[str, Any],
        *,
        workers: int,
        run_dir: Path,
        ledger: Ledger,
    ) -> SimCluster:
        """A cluster on a clock of its own; there is nothing that a ledger would have to undo."""
        reason = self.can(backend)
        if reason:
            raise RefusedError(reason)
        return SimCluster(SimClock(), workers=workers, seed=self._seed, options=options)
