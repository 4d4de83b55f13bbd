"""session-expire: the service ends a client's session, as if it had heard nothing for too long.

    [[faults]]
    kind = "session-expire"
    target = "holder"
    when = "held"

What a long pause of the collector or a broken network does, in a moment and at a chosen one: the
lock is gone, the next one in the queue is granted it, and the former holder learns of it when its
library hears from the service.  Proof: the service does not know that session any more.

How, for ZooKeeper: whoever knows id and password of a session can take it up and close it; the
password follows from the id, and the id is found by the lock's node, whose data the adapters here
make ``session_name``.

Traps: a client that neither holds nor waits owns no node by which it could be found: aim at a
holder or waiter, of locks that are held for longer than it takes to find one (tens of ms).  It
cannot be undone; the client makes another session by itself, or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.core.clock import ms
from harness.core.errors import HarnessError
from harness.core.limits import EVIDENCE_TIMEOUT_MS, HEAL_TIMEOUT_MS, LOOK_AGAIN_MS
from harness.core.protocols import Evidence, Node, Sessional, SessionKeeping, WorkerHandle, World
from harness.core.undo import Step
from nemesis.base import WorkerFault, node_answers, pick, prove


class SessionExpire(WorkerFault):
    """Ends the sessions of workers at the service, once."""

    kind = "session-expire"
    summary = "lets the service end a client's session, as after too long a silence"
    runtimes: ClassVar[tuple[str, ...]] = ("docker", "process")
    families: ClassVar[tuple[str, ...]] = ("zookeeper",)
    refused: ClassVar[Mapping[str, str]] = {
        "sim": "a simulated client has no session: its locks end with their time to live",
        "redis": "it has no sessions: a lock ends with its time to live (flush, clock-jump end it)",
        "postgres": "a session is its connection: use backend-kill",
        "etcd": "it has no sessions, but a lease for each lock, which does not tell whose it is",
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._ended: dict[str, list[str]] = {}

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return []  # what is ended is ended

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for worker in self._workers(world, targets):
            # Between two locks it owns none, hence the second look.
            deadline_ns = world.clock.now() + ms(EVIDENCE_TIMEOUT_MS)
            while not (found := _end_sessions(world, worker)):
                if world.clock.now() >= deadline_ns:
                    raise HarnessError(
                        f"{self.kind}: no server knows a session of {worker.name} that has a lock "
                        "or waits for one, or its library does not name them as adapters here do"
                    )
                world.clock.sleep_until(world.clock.now() + ms(LOOK_AGAIN_MS))
            self._touched.add(worker.name)
            self._ended[worker.name] = found

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        def gone(worker: WorkerHandle) -> Evidence:
            server = _primary(world)
            if not isinstance(server, SessionKeeping):
                raise HarnessError(f"{server.name} cannot tell which sessions there are")
            ended = self._ended[worker.name]
            left = [identity for identity in ended if server.has_session(identity)]
            return Evidence(
                not left,
                f"{len(ended) - len(left)} of {len(ended)} sessions ended at the service",
                {"ended": ended, "left": left},
            )

        return self._prove(world, self._workers(world, targets), gone)

    def heal(self, world: World, targets: Sequence[str]) -> None:
        """Nothing: the client makes another session, or not."""

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        return prove(world, [_primary(world)], node_answers, HEAL_TIMEOUT_MS)


def _primary(world: World) -> Node:
    return pick(world.cluster.nodes.values(), [world.cluster.primary()], "node")[0]


def _end_sessions(world: World, worker: WorkerHandle) -> list[str]:
    """Ends the sessions of a worker; returns their ids."""
    server = _primary(world)
    if not isinstance(server, Sessional):
        raise HarnessError(f"{server.name} cannot tell whose sessions it has")
    for link in world.cluster.links:
        if link.src != worker.name:
            continue
        # One name for all its links: a session goes from server to server.
        found = list(server.sessions(link))
        if found:
            for identity in found:
                server.end_session(link, identity)
            return found
    return []
