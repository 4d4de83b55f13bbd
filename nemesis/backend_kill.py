"""backend-kill: the server ends the connections of a client, as an operator or a time-out does.

For a lock that lives in the connection (Postgres advisory locks) the lock is gone with it; a Redis
lock lives by its lease, and only what was under way is lost.  Proof: the server does not list
those connections any more (a client that comes back has others).

Traps: to a server all clients come from the proxy, so it tells them by the name that they gave
their connections (``Sessional``); a client that gives none cannot be found, and the fault says
so.  A client without an open connection has none to be killed: aim at a holder or waiter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, Link, Sessional, World
from harness.core.undo import Step
from nemesis.base import LinkFault, server_of


class BackendKill(LinkFault):
    """Ends the server's side of connections, once."""

    kind = "backend-kill"
    summary = (
        "lets the server end the connections of a client (CLIENT KILL, pg_terminate_backend); "
        "it may come back"
    )
    families: ClassVar[tuple[str, ...]] = ("redis", "postgres")
    refused: ClassVar[Mapping[str, str]] = {
        "etcd": "its locks live in leases and no client can end another's connection",
        "zookeeper": "a session outlives its connections; sever the link to end those",
    }

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._killed: dict[str, list[str]] = {}

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return []  # the client connects again by itself, or not

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for link in self._clean_links(world, targets):
            node = _sessional(world, link)
            found = list(node.sessions(link))
            if not found:
                raise HarnessError(
                    f"{self.kind}: {link.dst} knows no connection of {link.src}; it has none open "
                    "now, or its library does not name its connections as the adapters here do"
                )
            self._touched.add(link.name)
            for identity in found:
                node.end_session(link, identity)
            self._killed[link.name] = found

    def _apply(self, link: Link) -> None:
        """Not used: all is done by the server."""

    def _release(self, link: Link) -> None:
        """Nothing: what was ended stays so."""

    def _bit(self, world: World, link: Link) -> Evidence:
        there = set(_sessional(world, link).sessions(link))
        killed = self._killed[link.name]
        left = [identity for identity in killed if identity in there]
        return Evidence(
            not left,
            f"{len(killed) - len(left)} of {len(killed)} connections ended "
            f"({len(there) - len(left)} new ones)",
            {"killed": killed, "left": left},
        )


def _sessional(world: World, link: Link) -> Sessional:
    node = server_of(world, link)
    if not isinstance(node, Sessional):
        raise HarnessError(f"{link.dst} cannot tell whose connections it has")
    return node
