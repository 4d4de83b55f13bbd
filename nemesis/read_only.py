"""read-only: the server answers, but refuses every write.

What a primary does that has lost too many replicas: nobody is granted a lock, nobody can renew
one, and a release is refused, too.  A client must not take that for "somebody else has it".
Proof: a write is refused with the server's own words; healed: a write is accepted.

Trap: done by asking for more replicas than any cluster has (``min-replicas-to-write``); a replica
refuses writes anyway, with other words, so it is no target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.core.protocols import Evidence, Node
from nemesis.commands import ConfigFault, speaker, try_write

REPLICAS_WANTED = "1000000"
REFUSAL = "NOREPLICAS"


class ReadOnly(ConfigFault):
    """Makes servers refuse writes."""

    kind = "read-only"
    summary = "makes a server refuse every write (NOREPLICAS); reads go on"
    settings: ClassVar[tuple[str, ...]] = ("min-replicas-to-write",)
    refused: ClassVar[Mapping[str, str]] = {
        "etcd": "a member has no such mode; without its quorum it takes no writes: use partition",
        "zookeeper": "a server takes no writes only while it has lost its quorum: use partition",
    }

    def _apply(self, node: Node) -> None:
        speaker(node).command("CONFIG", "SET", self.settings[0], REPLICAS_WANTED)

    def _bit(self, node: Node) -> Evidence:
        refusal = try_write(node)
        return Evidence(
            REFUSAL in refusal,
            f"write refused ({refusal})" if refusal else "write accepted",
            {"refusal": refusal},
        )
