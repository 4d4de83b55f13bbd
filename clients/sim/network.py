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

Trap: one message is one chunk; there are no partial ones, so ``slicer`` is refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from clients.recipes.base import NotConnected
from clients.sim.clock import SimClock
from clients.sim.connection import Owner, SimConn, Toxic
from clients.sim.node import SimNode
from harness.core.clock import NS_PER_MS
from harness.core.errors import HarnessError
from harness.core.protocols import Direction, Probe
from harness.core.undo import Step

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
        """A new connection; NotConnected if the link is disabled.

        With the server dead the proxy accepts and closes at once, as Toxiproxy does.
        """
        if not self.enabled:
            raise NotConnected("connection refused")
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

    def undo(self, *kinds: str) -> Sequence[Step]:
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
    except NotConnected:
        return Probe("refused")
    conn.send(("ECHO", link.name))
    clock.run(start_ns + timeout_ms * NS_PER_MS, owner.seen)
    conn.close()
    if not owner.seen:
        return Probe("silent")
    if owner.seen[0] == "closed":
        return Probe("closed")
    return Probe("answered", clock.now() - start_ns)
