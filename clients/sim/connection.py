"""One client connection through a link: the plain way, and the way through toxics.

A connection carries one command at a time.  With no toxic in a direction its messages go straight
into the event heap; else they enter a ``Pipe``, which holds them for as long as the toxics of
*now* say, counted from their entry, and judges anew whenever toxics change.

A client that gives up leaves its bytes in the link: they reach the server when a jam ends.  That
is the late stale command which locks must survive.

Trap: one message is one chunk; there are no partial ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappush
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from clients.recipes.base import Script
from clients.sim.store import Command
from harness.core.clock import NS_PER_MS
from harness.core.protocols import Direction

if TYPE_CHECKING:
    from clients.sim.network import SimLink

EVALSHA_BYTES = 45  # a script goes over the wire as its digest
NS_PER_BYTE_AT_1_KBPS = 1_000_000  # Toxiproxy: rate KB/s = rate bytes per ms


class Toxic(msgspec.Struct, frozen=True):
    """One toxic of a direction."""

    kind: str
    stream: Direction
    attributes: Mapping[str, int]

    def listed(self) -> dict[str, Any]:
        """As Toxiproxy's API lists it."""
        return {
            "name": f"{self.kind}_{self.stream}",
            "type": self.kind,
            "stream": self.stream,
            "toxicity": 1.0,
            "attributes": dict(self.attributes),
        }


class Owner(Protocol):
    """Who opened a connection."""

    @property
    def timeout_ns(self) -> int | None: ...

    def replied(self, conn: SimConn, reply: Any) -> None: ...

    def dropped(self, conn: SimConn, why: str) -> None: ...

    def expired(self, conn: SimConn, serial: int) -> None: ...


class SimConn:
    """One client connection: at most one command is under way on it."""

    __slots__ = (
        "_clock",
        "_drawn",
        "armed",
        "closed",
        "down",
        "link",
        "node",
        "number",
        "owner",
        "sent_ns",
        "serial",
        "served_ns",
        "server_open",
        "up",
        "waiting",
    )

    def __init__(self, link: SimLink, owner: Owner) -> None:
        self._clock = link.clock
        self._drawn = link.drawn_ns
        self.link = link
        self.node = link.node
        self.owner = owner
        self.number = self._clock.number()  # the server's id of this connection
        self.closed = False  # by the client
        self.server_open = True
        self.waiting = self.armed = False
        self.serial = 0
        self.sent_ns = 0
        self.served_ns = 0  # when the server last carried out a command of this connection
        self.up = Pipe(self, "upstream")
        self.down = Pipe(self, "downstream")

    def send(self, command: Command) -> None:
        """Client side: sends one command."""
        clock, link = self._clock, self.link
        now_ns = self.sent_ns = clock._now_ns
        self.serial += 1
        self.waiting, self.armed = True, False
        if link.plain_up:
            heappush(clock.heap, (now_ns + self._drawn(), clock.number(), self.arrive, command))
        else:
            self.arm()
            self.up.enter(command, message_bytes(command))

    def arrive(self, command: Command) -> None:
        """Server side: a command came in."""
        if not self.server_open:
            return
        if self.node.state != "running":
            self.arm()
            self.node.backlog.append((self, command))
            return
        self.serve(command)

    def serve(self, command: Command) -> None:
        """Server side: carries a command out and answers."""
        reply = self.node.store.answer(command)
        clock, link = self._clock, self.link
        now_ns = self.served_ns = clock._now_ns
        if link.plain_down:
            at_ns = now_ns + self._drawn()
            heappush(clock.heap, (at_ns, clock.number(), self.receive, reply))
        else:
            self.arm()
            self.down.enter(reply, message_bytes(reply))

    def receive(self, reply: Any) -> None:
        """Client side: the answer came in."""
        if not self.closed:
            self.waiting = False
            self.owner.replied(self, reply)

    def arm(self) -> None:
        """Starts the client's time limit for the command under way.

        Only called where an answer may be late: in the plain case it always comes in time, and
        a timer per command would double the number of events.
        """
        if not self.armed and self.waiting and self.owner.timeout_ns is not None:
            self.armed = True
            self._clock.at(self.sent_ns + self.owner.timeout_ns, self.expire, self.serial)

    def expire(self, serial: int) -> None:
        """Client side: the time limit of command ``serial`` is over."""
        if self.waiting and not self.closed and serial == self.serial:
            self.owner.expired(self, serial)

    def hang_up(self, why: str) -> None:
        """Client side: sees that the connection was closed."""
        if not self.closed:
            self.owner.dropped(self, why)

    def close(self) -> None:
        """Client side: closes; what it sent is still on its way."""
        self.closed = True
        self.waiting = False
        self.down.held.clear()
        if not self.up.held:
            self.link.forget(self)

    def cut(self, why: str) -> None:
        """The proxy closes both sides; what it holds is lost."""
        self.server_open = False
        self.up.held.clear()
        self.down.held.clear()
        self.link.forget(self)
        self._clock.at(self._clock.now() + self._drawn(), self.hang_up, why)

    def server_closed(self, why: str) -> None:
        """The server is gone: the client hears of it behind the answers that are on their way."""
        self.server_open = False
        self.up.held.clear()
        self.down.enter(_Close(why), 0)


class _Close(msgspec.Struct, frozen=True):
    """The end of a stream, as it travels through the toxics."""

    why: str


class Pipe:
    """One direction of one connection, in the part of it that runs through toxics."""

    __slots__ = ("conn", "direction", "free_ns", "held", "last_ns", "passed_bytes", "planned")

    def __init__(self, conn: SimConn, direction: Direction) -> None:
        self.conn = conn
        self.direction: Direction = direction
        self.held: deque[tuple[int, int, Any]] = deque()  # entered_ns, bytes, message
        self.free_ns = 0  # when the bandwidth toxic is done with the message before
        self.last_ns = 0  # arrival of the last one at the far end: order is kept
        self.passed_bytes = 0
        self.planned = 0

    def enter(self, message: Any, size_bytes: int) -> None:
        """A message comes in at the near end."""
        now_ns = self.conn.link.clock.now()
        self.held.append((now_ns + self._jitter_ns(size_bytes), size_bytes, message))
        self.plan_timeout()
        self.pump(0)

    def _jitter_ns(self, size_bytes: int) -> int:
        link, extra_ns = self.conn.link, 0
        for toxic in link.chains[self.direction] if size_bytes else ():
            if toxic.kind == "latency" and toxic.attributes["jitter"]:
                span_ns = toxic.attributes["jitter"] * NS_PER_MS
                extra_ns += link.random.randint(-span_ns, span_ns)
        return extra_ns

    def plan_timeout(self) -> None:
        """Toxic ``timeout`` with a time: closes that long after the last message came in."""
        clock = self.conn.link.clock
        for toxic in self.conn.link.chains[self.direction]:
            if toxic.kind == "timeout" and toxic.attributes["timeout"]:
                self.planned += 1
                at_ns = clock.now() + toxic.attributes["timeout"] * NS_PER_MS
                clock.at(at_ns, self._time_out, (self.planned, toxic))

    def _time_out(self, plan: tuple[int, Toxic]) -> None:
        number, toxic = plan
        live = not self.conn.closed and toxic in self.conn.link.chains[self.direction]
        if live and number == self.planned:
            self.conn.cut("connection closed by the proxy (timeout)")

    def pump(self, _: int) -> None:
        """Lets through what may leave now and plans the next look."""
        clock, held = self.conn.link.clock, self.held
        while held:
            entered_ns, size_bytes, message = held[0]
            due_ns = self._due_ns(entered_ns, size_bytes)
            if due_ns is None:
                return  # until the toxics change
            if due_ns > clock.now():
                clock.at(due_ns, self.pump, 0)
                return
            held.popleft()
            self.free_ns = clock.now()
            self._let_through(message, size_bytes)
        if self.conn.closed:
            self.conn.link.forget(self.conn)

    def _due_ns(self, entered_ns: int, size_bytes: int) -> int | None:
        """When this message leaves under the toxics of now; None = not while they stay."""
        due_ns = entered_ns
        for toxic in self.conn.link.chains[self.direction]:
            kind, attributes = toxic.kind, toxic.attributes
            if size_bytes == 0:
                if kind == "slow_close":
                    due_ns += attributes["delay"] * NS_PER_MS
            elif kind == "latency":
                due_ns += attributes["latency"] * NS_PER_MS
            elif kind == "bandwidth":
                if attributes["rate"] <= 0:
                    return None
                spent_ns = size_bytes * NS_PER_BYTE_AT_1_KBPS // attributes["rate"]
                due_ns = max(due_ns, self.free_ns) + spent_ns
            elif kind == "reset_peer":
                due_ns += attributes["timeout"] * NS_PER_MS
        return due_ns

    def _let_through(self, message: Any, size_bytes: int) -> None:
        conn = self.conn
        finished = ""
        for toxic in conn.link.chains[self.direction] if size_bytes else ():
            if toxic.kind == "timeout":
                return
            if toxic.kind == "reset_peer":
                conn.cut("connection reset by the proxy")
                return
            if toxic.kind == "limit_data":
                left_bytes = toxic.attributes["bytes"] - self.passed_bytes
                if size_bytes >= left_bytes:
                    finished = "connection closed by the proxy (limit_data)"
                if size_bytes > left_bytes:
                    conn.cut(finished)
                    return
                self.passed_bytes += size_bytes
        self._deliver(message)
        if finished:
            conn.cut(finished)

    def _deliver(self, message: Any) -> None:
        conn, clock = self.conn, self.conn.link.clock
        self.last_ns = max(self.last_ns, clock.now() + conn.link.drawn_ns())
        if type(message) is _Close:
            clock.at(self.last_ns, conn.hang_up, message.why)
        elif self.direction == "upstream":
            clock.at(self.last_ns, conn.arrive, message)
        else:
            clock.at(self.last_ns, conn.receive, message)


def message_bytes(message: Any) -> int:
    """About as many bytes as the message has on the wire (RESP), at least 1."""
    if isinstance(message, Script):
        return EVALSHA_BYTES
    if isinstance(message, tuple):
        return 4 + sum(message_bytes(part) for part in message)
    return 5 + len(str(message))
