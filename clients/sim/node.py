"""A simulated server: paused, killed and started again, with or without its data.

    node = SimNode(clock, "redis", SimStore(clock))
    node.pause()       # commands pile up and are carried out, in order, by resume()

While it is paused its wall clock goes on, so leases end under commands that wait (as after
SIGSTOP).  ``kill`` loses the waiting commands and every connection.  Data survives a kill as with
``appendfsync always``, unless ``persistent`` is off or ``start(wipe=True)``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from clients.recipes.base import ServerError
from clients.sim.clock import SimClock
from clients.sim.store import Command, SimStore
from harness.core.clock import NS_PER_MS, NS_PER_S
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import ClockReading, Link, Probe, Status
from harness.core.undo import Step

if TYPE_CHECKING:
    from clients.sim.connection import SimConn
    from clients.sim.network import SimLink

START_MS = 20  # a small Redis answers about that long after exec

NODE = "redis"  # name of the one server


class SimNode:
    """One server.  Implements ``protocols.Node``."""

    def __init__(
        self, clock: SimClock, name: str, store: SimStore, *, persistent: bool = True
    ) -> None:
        self.clock, self.name, self.store = clock, name, store
        self.role = "primary"
        self.persistent = persistent
        self.state: Literal["running", "paused", "dead"] = "running"
        self.incarnation = 1
        self.started_ns = clock.now()
        self.backlog: deque[tuple[SimConn, Command]] = deque()
        self.links: list[SimLink] = []
        self.direct: SimLink | None = None
        """The way past every proxy, which ``probe`` takes (set by the cluster)."""

    def status(self) -> Status:
        return Status(self.state, f"{self.name}#{self.incarnation}")

    def pause(self) -> None:
        self._must_live("paused")
        self.state = "paused"

    def resume(self) -> None:
        """Goes on; everything that waited is carried out now, in order of arrival."""
        if self.state != "paused":
            return
        self.state = "running"
        while self.backlog:
            conn, command = self.backlog.popleft()
            conn.serve(command)

    def kill(self) -> None:
        self.state = "dead"
        self.backlog.clear()
        for link in self.links:
            for conn in list(link.conns):
                conn.server_closed("connection closed by the server")
        if not self.persistent:
            self.store.wipe()

    def undo_pause(self) -> Sequence[Step]:
        """A simulated pause ends with this process: nothing to undo from another one."""
        return ()

    def start(self, *, wipe: bool = False) -> None:
        """Starts it again; takes START_MS of virtual time."""
        if self.state != "dead":
            raise HarnessError(f"node {self.name} is {self.state}; only a dead one can be started")
        if wipe:
            self.store.wipe()
        self.clock.sleep_until(self.clock.now() + START_MS * NS_PER_MS)
        self.state = "running"
        self.incarnation += 1
        self.started_ns = self.clock.now()
        self.store.restarted()

    def probe(self, timeout_ms: int) -> Probe:
        """An echo past every proxy."""
        if self.direct is None:
            raise HarnessError(f"node {self.name} has no direct way in")
        if self.state == "dead":
            return Probe("refused")
        return self.direct.probe(timeout_ms)

    def facts(self) -> Mapping[str, Any]:
        store = self._answering()
        return {
            "run_id": f"{self.name}#{self.incarnation}",
            "uptime_s": (self.clock.now() - self.started_ns) // NS_PER_S,
            "keys": len(store.keys()),
            "commands": store.commands,
            "echoes": store.echoes,
            "persistent": self.persistent,
            "role": self.role,
        }

    def leave_mark(self, mark: str) -> None:
        """Stores ``mark`` among the data (``protocols.Markable``)."""
        self.command("SET", mark, "1")

    def has_mark(self, mark: str) -> bool:
        return self.command("EXISTS", mark) == "1"

    def command(self, *words: str) -> str:
        """Carries a command out at once, as ``protocols.Commandable`` says."""
        try:
            reply = self._answering().execute(words)
        except ServerError as error:
            raise AnsweredError(str(error)) from error
        return "\n".join(reply) if isinstance(reply, list) else str(reply)

    def undo_command(self, *words: str) -> Sequence[Step]:
        """The simulated server ends with this process: nothing to undo from another one."""
        return ()

    def sessions(self, link: Link) -> Sequence[str]:
        """``protocols.Sessional``; the simulated server sees through the proxy."""
        return [
            str(conn.number)
            for way in self.links
            if way.name == link.name
            for conn in way.conns
            if conn.server_open
        ]

    def end_session(self, link: Link, identity: str) -> None:
        for way in self.links:
            for conn in list(way.conns):
                if str(conn.number) == identity:
                    conn.server_closed("connection closed by the server (killed)")

    def set_clock(self, *, offset_ns: int, rate_ppm: int) -> None:
        """The wall clock, by which leases are judged (``protocols.Skewable``)."""
        self.store.wall_offset_ns, self.store.wall_rate_ppm = offset_ns, rate_ppm
        self.store.wall_since_ns = self.clock.now()

    def clock_reading(self) -> ClockReading:
        """Exact: nothing lies between the two."""
        return ClockReading(self._answering().wall_ns() - self.clock.now(), 0)

    def undo_clock(self) -> Sequence[Step]:
        """As for a pause: nothing to undo from another process."""
        return ()

    def _answering(self) -> SimStore:
        if self.state != "running":
            raise HarnessError(f"node {self.name} does not answer: it is {self.state}")
        return self.store

    def _must_live(self, done: str) -> None:
        if self.state == "dead":
            raise HarnessError(f"node {self.name} is dead and cannot be {done}")
