"""One simulated server behind one simulated proxy per worker.

    cluster = SimCluster(clock, workers=4, seed=7, options={"persistence": "none"})
    cluster.nodes["redis"].kill()

Options are those of the real ``redis-single`` that mean something here (``persistence``) and the
speed of the links: ``latency_us`` one way, plus up to ``spread_us`` drawn evenly per message.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clients.sim.clock import SimClock
from clients.sim.network import Latency, SimLink
from clients.sim.node import NODE, SimNode
from clients.sim.store import SimStore
from harness.core.errors import UserError
from harness.core.protocols import Link, Node
from harness.core.rng import stream

PORT_FIRST = 40_000  # nobody listens there: the number only tells the links apart
OPTIONS: Mapping[str, Any] = {"persistence": "aof", "latency_us": 30, "spread_us": 60}
"""Options with their defaults; the latency is that of loopback through Toxiproxy."""


class SimCluster:
    """Implements ``protocols.Cluster``."""

    def __init__(
        self,
        clock: SimClock,
        *,
        workers: int,
        seed: int,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        settled = settle(options or {})
        self.clock = clock
        self.store = SimStore(clock)
        self.node = SimNode(clock, NODE, self.store, persistent=settled["persistence"] == "aof")
        latency = Latency(settled["latency_us"] * 1000, settled["spread_us"] * 1000)
        self.worker_links = [
            SimLink(
                clock,
                self.node,
                f"w{index}-{NODE}",
                src=f"w{index}",
                port=PORT_FIRST + index,
                latency=latency,
                rng=stream(seed, f"sim/link/{index}"),
            )
            for index in range(workers)
        ]
        self.node.direct = SimLink(
            clock,
            self.node,
            f"direct-{NODE}",
            src="harness",
            port=PORT_FIRST + workers,
            latency=latency,
            rng=stream(seed, "sim/link/direct"),
        )
        self.nodes: Mapping[str, Node] = {NODE: self.node}
        self.links: Sequence[Link] = list(self.worker_links)
        self.versions: Mapping[str, str] = {"sim": "1"}

    def endpoints(self, worker: int) -> Sequence[Mapping[str, Any]]:
        link = self.worker_links[worker]
        return [{"name": NODE, "host": link.host, "port": link.port}]

    def primary(self) -> str:
        return NODE

    def collect_logs(self, into: Path) -> None:
        """A simulated server writes no log: what it did is in the history."""

    def down(self) -> None:
        """Nothing outlives the object."""


def settle(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with the defaults filled in; UserError lists every problem."""
    problems = []
    for name, value in options.items():
        if name not in OPTIONS:
            close = difflib.get_close_matches(name, OPTIONS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(OPTIONS)}"
            problems.append(f"backend.options.{name}: unknown option of the simulation; {hint}")
        elif name == "persistence":
            if value not in ("aof", "none"):
                problems.append(f"backend.options.persistence: {value!r} is not aof or none")
        elif type(value) is not int or value < 0:
            problems.append(f"backend.options.{name}: {value!r} is not a whole number >= 0")
    if problems:
        raise UserError("the simulated backend cannot be built", problems)
    return {**OPTIONS, **options}
