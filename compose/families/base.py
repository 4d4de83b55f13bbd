"""How the harness speaks to a server of one kind: echo, facts, and what else it can be asked.

    family = FAMILIES.load("redis")()
    family.probe("127.0.0.1", 6379, 250)       # Probe(outcome="answered", rtt_ns=41000)
    family.facts("127.0.0.1", 6379)["role"]    # "primary"

A family is stateless.  What every one has is abstract here; the powers below that (marks,
commands, sessions, a clock) are refused with a reason unless the family has them, and faults ask
for them only where their ``can`` said yes.

Traps: no client library, which would say hello, try again and blur *silent*, *closed* and
*refused*.  The echo should be a request that workers never send, so that the server's own count
of them (``echoes`` in facts) tells whether a request arrived: that is what proves one-way faults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import ClockReading, Probe
from harness.core.undo import Step


class Family(ABC):
    """One kind of server.  ``name`` as in ``BackendSpec.family`` and in the faults' tables."""

    name: ClassVar[str]
    # Does a server get lost data back from the others?  (``protocols.OwnDisk``)
    replicated: ClassVar[bool] = False

    @abstractmethod
    def probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        """One echo on a fresh connection; an error answer is an answer."""

    @abstractmethod
    def facts(
        self, host: str, port: int, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
    ) -> dict[str, Any]:
        """What the server says of itself: at least ``role`` (primary | replica | member; the
        leader of a quorum is its primary), ``server`` and ``version``; ``run_id`` (another one
        after each start), ``term`` (of a leader), ``echoes``, ``commands``, ``keys``,
        ``persistent``, ``uptime_s`` where it knows them.  ``echoes`` goes up with each echo that
        arrives and with nothing else, by one or (the number of the last) by more.  HarnessError if
        it does not answer."""

    @abstractmethod
    def check_ready(self, host: str, port: int) -> None:
        """HarnessError until the server can do its work (in a cluster: has found its leader)."""

    def peer_probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        """One echo at the port that other nodes of the cluster dial; by default as ``probe``."""
        return self.probe(host, port, timeout_ms)

    def clock(self, host: str, port: int) -> ClockReading:
        """How far its wall clock is ahead of ours."""
        raise self._cannot("tell its time")

    def leave_mark(self, host: str, port: int, mark: str) -> None:
        """Stores ``mark`` as durably as any other acknowledged write (``protocols.Markable``)."""
        raise self._cannot("keep a mark")

    def has_mark(self, host: str, port: int, mark: str) -> bool:
        """True if that mark is among its data."""
        raise self._cannot("keep a mark")

    def command(self, host: str, port: int, words: Sequence[str]) -> str:
        """Carries out one command of its own tongue (``protocols.Commandable``)."""
        raise self._cannot("take commands")

    def undo_command(self, host: str, port: int, words: Sequence[str]) -> Sequence[Step]:
        """Steps that carry the command out from any process, on this start of the server only."""
        raise self._cannot("take commands")

    def sessions(self, host: str, port: int, name: str) -> list[str]:
        """Its own ids of the open sessions of clients that gave themselves this ``name``
        (``protocols.session_name``)."""
        raise self._cannot("tell whose sessions it has")

    def end_session(self, host: str, port: int, identity: str) -> None:
        """Ends one of them; nothing happens if it is gone."""
        raise self._cannot("end a session of a client's")

    def promote(self, host: str, port: int) -> None:
        """Makes a replica the primary (``protocols.Promotable``)."""
        raise self._cannot("be promoted")

    def has_session(self, host: str, port: int, identity: str) -> bool:
        """Does the service still know that session, connected or not."""
        raise self._cannot("tell sessions from connections")

    def _cannot(self, what: str) -> HarnessError:
        return HarnessError(f"a server of the family {self.name!r} cannot {what}")
