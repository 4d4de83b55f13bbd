"""memory-pressure: the server is full; it refuses writes, or makes room by throwing locks away.

``policy = "noeviction"`` answers writes with OOM.  The ``volatile-*`` policies look for victims
among keys that expire, and in a store of long-lived data those are the locks: this is how a lock
in a shared cache vanishes while it is held.  Proof: a write is refused with OOM, or the server's
count of evicted keys went up; healed: the old bounds are back and a write is accepted.

How: for an eviction policy the store first gets ballast (keys that expire much later than any
lock), then the bound is set below what is in use, so that keys must go at once, those that expire
soonest first with ``volatile-ttl``.  The heal takes the ballast away.

Traps: Redis looks at a sample of the keys, so the sample is made as large as it may be and the
ballast small; with ``allkeys-lru`` a lock that many ask for is the last to go, so expect no harm.
A server with another bound already keeps it, since it is lowered and never raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, Node, World
from harness.core.undo import Step
from nemesis.commands import ConfigFault, speaker, try_write
from nemesis.params import Parameter

NO_EVICTION = "noeviction"
POLICIES = (NO_EVICTION, "volatile-ttl", "volatile-lru", "volatile-random", "allkeys-lru")
BALLAST_KEYS = 48  # with the locks of a test about the largest sample that Redis takes (64)
BALLAST_BYTES = 4_096
BALLAST_LIFE_S = "3600"  # any lock expires sooner
EVICTED_BYTES = BALLAST_BYTES * BALLAST_KEYS // 3
SAMPLES = "64"
REFUSAL = "OOM"


class MemoryPressure(ConfigFault):
    """Lowers ``maxmemory`` of servers below what they use."""

    kind = "memory-pressure"
    summary = "fills a server up: it refuses writes (OOM) or evicts keys, as its policy says"
    runtimes: ClassVar[tuple[str, ...]] = ("docker", "process")
    refused: ClassVar[Mapping[str, str]] = {
        "postgres": "advisory locks are never evicted; a full table of locks refuses new ones",
        "sim": "a simulated server has no bound on memory",
        "zookeeper": "it evicts nothing, and has no bound on its data but the heap of its Java",
        "etcd": "it evicts nothing: use store-full",
    }
    # The bound goes back first: with the old policy and the low bound writes would be refused.
    settings: ClassVar[tuple[str, ...]] = ("maxmemory", "maxmemory-policy", "maxmemory-samples")
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("policy", str, "", NO_EVICTION, "what the full server does", choices=POLICIES),
    )

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._evicted: dict[str, int] = {}

    @property
    def _evicts(self) -> bool:
        return bool(self.params["policy"] != NO_EVICTION)

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        steps = list(super().undo(world, targets))
        if self._evicts:
            for node in self._nodes(world, targets):
                steps += speaker(node).undo_command("DEL", *ballast())
        return steps

    def _apply(self, node: Node) -> None:
        server = speaker(node)
        self._evicted[node.name] = number(node, "evicted_keys")
        server.command("CONFIG", "SET", "maxmemory-policy", self.params["policy"])
        server.command("CONFIG", "SET", "maxmemory-samples", SAMPLES)
        if not self._evicts:
            server.command("CONFIG", "SET", "maxmemory", "1")
            return
        for key in ballast():
            server.command("SET", key, "x" * BALLAST_BYTES, "EX", BALLAST_LIFE_S)
        bound_bytes = number(node, "used_memory") - EVICTED_BYTES
        if bound_bytes <= 0:
            raise HarnessError(f"{self.kind}: {node.name} uses too little memory to be squeezed")
        server.command("CONFIG", "SET", "maxmemory", str(bound_bytes))

    def _restore(self, node: Node) -> None:
        super()._restore(node)
        if self._evicts:
            speaker(node).command("DEL", *ballast())

    def _bit(self, node: Node) -> Evidence:
        refusal = try_write(node)
        evicted = number(node, "evicted_keys") - self._evicted[node.name]
        if self._evicts:
            return Evidence(
                evicted > 0, f"{evicted} keys evicted", {"evicted": evicted, "refusal": refusal}
            )
        return Evidence(
            REFUSAL in refusal,
            f"write refused ({refusal})" if refusal else "write accepted",
            {"evicted": evicted, "refusal": refusal},
        )


def ballast() -> list[str]:
    """Names of the keys that fill the store up."""
    return [f"lockhavoc:ballast:{count}" for count in range(BALLAST_KEYS)]


def number(node: Node, field: str) -> int:
    """A number that INFO tells; HarnessError if it does not."""
    for line in speaker(node).command("INFO").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value)
    raise HarnessError(f"{node.name}: INFO does not tell {field}")
