"""Two PostgreSQL servers: a primary and a standby that streams from it.

Example: ``[backend]`` with ``name = "postgres-ha"``, and the fault ``failover``.

Nobody promotes by himself: the fault does, as an operator would.  A server that starts looks at the
other one first (compose/images/postgres/lockhavoc-postgres), so that a former primary comes back
as a standby if it can see that it was replaced, and as a second primary if it cannot.

Traps: replication is asynchronous, and a commit that the standby had not received is gone after a
fail-over.  Advisory locks never reach it: a fail-over forgets all of them, however little it was
behind.  A sequence is logged 32 values ahead, so tokens usually jump forward; one whose log had not
arrived goes back.  The servers listen on different ports, because each finds its proxy to the other
on its own loopback at the other's port.
"""

from __future__ import annotations

from collections.abc import Mapping

from compose.backends.postgres import (
    PORT,
    PORT_STANDBY,
    POSTGRES_IMAGE_ADVICE,
    POSTGRES_LOCAL,
    POSTGRES_OPTIONS,
    POSTGRES_PROGRAMS,
    postgres_server_args,
)
from compose.backends.spec import RELEASES, BackendSpec, NodeSpec
from compose.primary import facts_of
from harness.core.errors import HarnessError
from harness.core.protocols import Node


def formed(nodes: Mapping[str, Node]) -> str:
    """ "" if the standby streams from the primary."""
    lacks = []
    for name, facts in facts_of(nodes).items():
        if isinstance(facts, HarnessError):
            lacks.append(f"{name}: {facts}")
        elif not facts["streaming"]:
            lacks.append(f"{name} replicates nothing")
    return "; ".join(lacks)


POSTGRES_HA = BackendSpec(
    name="postgres-ha",
    family="postgres",
    nodes=(
        NodeSpec(name="postgres1", port=PORT, peer_ports=(PORT,)),
        NodeSpec(name="postgres2", port=PORT_STANDBY, peer_ports=(PORT_STANDBY,)),
    ),
    compose_file="postgres-ha.yaml",
    image="postgres",
    releases=RELEASES,
    releases_refused={},
    options=POSTGRES_OPTIONS,
    server_args=postgres_server_args,
    programs=POSTGRES_PROGRAMS,
    image_advice=POSTGRES_IMAGE_ADVICE,
    local=POSTGRES_LOCAL,
    formed=formed,
)
