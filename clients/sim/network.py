"""Links with toxics, in virtual time: what Toxiproxy does to bytes, done to messages.

    link = SimLink(clock, node, "w0-redis", src="w0", latency=Latency(...))
    link.add_toxic("bandwidth", "upstream", {"rate": 0})     # a jam: kept, delivered by clear()
    link.clear()

Semantics after Toxiproxy 2.12 (``toxics/*.go``, ``link.go``): ``latency`` and ``bandwidth`` keep
bytes in order and let go of them when removed; ``timeout`` throws bytes away and closes the
connection when it is removed (or after its time, if that is not 0); ``limit_data`` closes after
so many bytes; ``reset_peer`` swallows the first message and closes; ``slow_close`` delays a close;
a disabled link drops its connections, with all they hold, and refuses new ones.  A direction
never waits for the other.

A client that gives up leaves its bytes in the link: they reach the server when the jam ends.
That is the late stale command which locks must survive.

The plain case (no toxic in that direction) goes past all of this, straight into the event heap.
Times are judged anew whenever toxics change: a message leaves when it has been held long enough
under the toxics of *now*, counted from its entry.

Trap: one message is one chunk; there are no partial ones, so ``slicer`` is refused.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappush
from typing import Any, Protocol

import msgspec

from clients.recipes.base import LinkLost, Script
from clients.sim.clock import SimClock
from clients.sim.node import SimNode
from clients.sim.store import Command
from harness.core.clock import NS_PER_MS
from harness.core.errors import HarnessError
from harness.core.protocols import Direction, Probe
from harness.core.undo import Step

EVALSHA_BYTES = 45  # a script goes over the wire as its digest
NS_PER_BYTE_AT_1_KBPS = 1_000_000  # Toxiproxy: rate KB/s = rate bytes per ms

ATTRIBUTES: Mapping[str, Mapping[str, int]] = {
    "latency": {"latency": 0, "jitter": 0},
    "bandwidth": {"rate": 0},
    "timeout": {"timeout": 0},
    "limit_data": {"bytes": 0},
    "reset_peer": {"timeout": 0},
    "slow_close": {"delay": 0},
}
"""Known toxics with their attributes and defaults, as in Toxiproxy's documentation."""


class Latency(msgspec.Struct, frozen=True):
    """One way through a link: ``base_ns`` plus up to ``spread_ns``, evenly."""

    base_ns: int = 30_000
    spread_ns: int = 60_000


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

    timeout_ns: int | None

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


class SimLink:
    """worker -> node, through a proxy of its own.  Implements ``protocols.Link``."""

    def __init__(
        self,
        clock: SimClock,
        node: SimNode,
        name: str,
        *,
        src: str,
        port: int,
        latency: Latency,
        rng: random.Random,
    ) -> None:
        self.clock, self.node = clock, node
        self.name, self.src, self.dst = name, src, node.name
        self.host, self.port = "127.0.0.1", port
        self.random = rng
        self.enabled = True
        self.plain_up = self.plain_down = True
        self.chains: dict[Direction, list[Toxic]] = {"upstream": [], "downstream": []}
        self.conns: dict[SimConn, None] = {}  # a dict, since a set has no repeatable order
        self.drawn_ns = _drawer(rng.random, latency)
        node.links.append(self)

    def connect(self, owner: Owner) -> SimConn:
        """A new connection; LinkLost if the link is disabled.

        With the server dead the proxy accepts and closes at once, as Toxiproxy does.
        """
        if not self.enabled:
            raise LinkLost("connection refused")
        conn = SimConn(self, owner)
        self.conns[conn] = None
        if self.node.state == "dead":
            conn.cut("connection closed by the proxy (server refused)")
        elif not self.plain_up or not self.plain_down:
            conn.up.plan_timeout()
            conn.down.plan_timeout()
        return conn

    def forget(self, conn: SimConn) -> None:
        """Stops following a connection that has nothing left to deliver."""
        self.conns.pop(conn, None)

    def undo(self) -> Sequence[Step]:
        """Nothing outlives this process, so there is nothing to undo from another one."""
        return ()

    def add_toxic(self, kind: str, direction: Direction, attributes: Mapping[str, Any]) -> None:
        """Adds a toxic at the end of its direction's chain; HarnessError if it is not known."""
        known = ATTRIBUTES.get(kind)
        if known is None:
            raise HarnessError(f"toxic {kind!r} is not simulated (known: {', '.join(ATTRIBUTES)})")
        if direction not in self.chains:
            raise HarnessError(f"toxic {kind!r}: direction {direction!r} is neither stream")
        strange = sorted(set(attributes) - set(known))
        if strange:
            raise HarnessError(f"toxic {kind!r} has no attribute {strange[0]!r}: {sorted(known)}")
        if any(toxic.kind == kind for toxic in self.chains[direction]):
            raise HarnessError(f"link {self.name} already has the toxic {kind}_{direction}")
        values = {**known, **{name: int(value) for name, value in attributes.items()}}
        self.chains[direction].append(Toxic(kind, direction, values))
        self._judge_plain()
        for conn in list(self.conns):
            pipe = conn.up if direction == "upstream" else conn.down
            pipe.plan_timeout()
            pipe.passed_bytes = 0
            pipe.pump(0)

    def set_enabled(self, enabled: bool) -> None:
        """False: closes all connections and refuses new ones."""
        self.enabled = enabled
        if not enabled:
            for conn in list(self.conns):
                conn.cut("connection closed by the proxy (disabled)")

    def remove_toxic(self, kind: str, direction: Direction) -> None:
        """Removes one toxic; nothing happens if it is not there."""
        self._remove([t for t in self.chains[direction] if t.kind == kind])

    def clear(self) -> None:
        """Removes all toxics and enables the link; held messages go on, in order."""
        self.enabled = True
        self._remove([toxic for chain in self.chains.values() for toxic in chain])

    def _remove(self, toxics: Sequence[Toxic]) -> None:
        closes = any(toxic.kind == "timeout" for toxic in toxics)
        for toxic in toxics:
            self.chains[toxic.stream].remove(toxic)
        self._judge_plain()
        for conn in list(self.conns):
            if closes:
                conn.cut("connection closed by the proxy (timeout removed)")
            else:
                conn.up.pump(0)
                conn.down.pump(0)

    def toxics(self) -> Sequence[Mapping[str, Any]]:
        """As the proxy would list them."""
        off: list[Mapping[str, Any]] = [] if self.enabled else [{"enabled": False}]
        return off + [toxic.listed() for chain in self.chains.values() for toxic in chain]

    def probe(self, timeout_ms: int) -> Probe:
        """An echo through this link; lets virtual time go on until it is answered or lost."""
        return echo(self, timeout_ms)

    def _judge_plain(self) -> None:
        self.plain_up = not self.chains["upstream"]
        self.plain_down = not self.chains["downstream"]


def _drawer(draw: Callable[[], float], latency: Latency) -> Callable[[], int]:
    base_ns, spread_ns = latency.base_ns, latency.spread_ns
    return lambda: base_ns + int(draw() * spread_ns)


class _Echo:
    """Owner of a probe's connection."""

    timeout_ns: int | None = None

    def __init__(self) -> None:
        self.seen: list[str] = []

    def replied(self, conn: SimConn, reply: Any) -> None:
        self.seen.append("answered")

    def dropped(self, conn: SimConn, why: str) -> None:
        self.seen.append("closed")

    def expired(self, conn: SimConn, serial: int) -> None:
        """No limit of its own: ``echo`` stops the clock."""


def echo(link: SimLink, timeout_ms: int) -> Probe:
    """Sends ECHO through ``link`` and waits up to ``timeout_ms`` of virtual time."""
    clock, owner = link.clock, _Echo()
    start_ns = clock.now()
    try:
        conn = link.connect(owner)
    except LinkLost:
        return Probe("refused")
    conn.send(("ECHO", link.name))
    clock.run(start_ns + timeout_ms * NS_PER_MS, owner.seen)
    conn.close()
    if not owner.seen:
        return Probe("silent")
    if owner.seen[0] == "closed":
        return Probe("closed")
    return Probe("answered", clock.now() - start_ns)


def message_bytes(message: Any) -> int:
    """About as many bytes as the message has on the wire (RESP), at least 1."""
    if isinstance(message, Script):
        return EVALSHA_BYTES
    if isinstance(message, tuple):
        return 4 + sum(message_bytes(part) for part in message)
    return 5 + len(str(message))
