"""read-only: the server answers, but refuses every write.

Redis: what a primary does that has lost too many replicas.  Nobody is granted a lock, nobody can
renew one, and a release is refused, too; a client must not take that for "somebody else has it".
PostgreSQL: what an operator makes of it for a migration (``default_transaction_read_only``).
Advisory locks are no data and go on as before; a token from a sequence is refused.

Proof: a write is refused with the server's own words; healed: a write is accepted.

Traps: in Redis it is done by asking for more replicas than any cluster has
(``min-replicas-to-write``).  A replica or standby refuses writes anyway, so it is no target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.core import limits
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import Evidence, Node, World
from harness.core.undo import Step
from nemesis.base import node_answers, prove
from nemesis.commands import ConfigFault, speaker, try_write
from nemesis.families import family_of

REPLICAS_WANTED = "1000000"
POSTGRES = "postgres"
REFUSALS = {"redis": "NOREPLICAS", POSTGRES: "25006"}
_SEAL = ("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
# Allowed in a read-only transaction, too: PostgreSQL counts it as no write.
_UNSEAL = ("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
_WRITE = "CREATE SEQUENCE IF NOT EXISTS lockhavoc_probe"


class ReadOnly(ConfigFault):
    """Makes servers refuse writes."""

    kind = "read-only"
    summary = "makes a server refuse every write; reads (and advisory locks) go on"
    families: ClassVar[tuple[str, ...]] = tuple(REFUSALS)
    settings: ClassVar[tuple[str, ...]] = ("min-replicas-to-write",)
    refused: ClassVar[Mapping[str, str]] = {
        "etcd": "a member has no such mode; without its quorum it takes no writes: use partition",
        "zookeeper": "a server takes no writes only while it has lost its quorum: use partition",
    }

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        if family_of(world.backend) != POSTGRES:
            return super().undo(world, targets)
        return [
            step
            for node in self._nodes(world, targets)
            for statement in _UNSEAL
            for step in speaker(node).undo_command(statement)
        ]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        if family_of(world.backend) != POSTGRES:
            super().inject(world, targets)
            return
        for node in self._nodes(world, targets):
            refusal = _refusal(node)
            if refusal:
                raise HarnessError(f"{self.kind}: {node.name} refuses writes already ({refusal})")
            self._remember(node)
            for statement in _SEAL:
                speaker(node).command(statement)

    def _apply(self, node: Node) -> None:
        speaker(node).command("CONFIG", "SET", self.settings[0], REPLICAS_WANTED)

    def _restore(self, node: Node) -> None:
        if node.name in self._was:
            super()._restore(node)
            return
        for statement in _UNSEAL:
            speaker(node).command(statement)

    def _bit(self, node: Node) -> Evidence:
        family = "redis" if node.name in self._was else POSTGRES
        refusal = try_write(node) if node.name in self._was else _refusal(node)
        return Evidence(
            REFUSALS[family] in refusal,
            f"write refused ({refusal})" if refusal else "write accepted",
            {"refusal": refusal},
        )

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        if family_of(world.backend) != POSTGRES:
            return super().healed(world, targets)
        return prove(world, self._nodes(world, targets), _takes_writes, limits.HEAL_TIMEOUT_MS)


def _refusal(node: Node) -> str:
    """ "" if PostgreSQL accepts a write now, else its error; for later connections that is."""
    try:
        speaker(node).command(_WRITE)
    except AnsweredError as error:
        return str(error)
    return ""


def _takes_writes(node: Node) -> Evidence:
    seen, refusal = node_answers(node), _refusal(node)
    says = f"write refused ({refusal})" if refusal else "write accepted"
    return Evidence(
        seen.bit and not refusal, f"{seen.says}, {says}", {**seen.facts, "refusal": refusal}
    )
