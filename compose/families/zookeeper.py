"""ZooKeeper as a family of servers; its protocols are in ``zookeeper_wire.py``.

    ZookeeperFamily().probe("127.0.0.1", 2181, 250)        # Probe(outcome="answered", rtt_ns=…)
    ZookeeperFamily().facts("127.0.0.1", 2181)["role"]     # "primary": the leader of the quorum

The echo is the word ``stmk``, which sets the server's trace mask to the eight bytes that follow and
is answered with them; ``gtmk`` reads the mask.  No client library sends it, it is kept by the one
server that it reached, whether or not that has a leader, and a mask changes nothing while tracing
is off.  So the mask is the last echo that arrived: echoes are numbered, by a clock that only goes
up, and ``facts()["echoes"]`` is greater if one has arrived.

Traps.  A server without a leader answers words but serves nothing ("not currently serving"): then
its role is *member* and it has no keys.  ``srvr`` tells the epoch in the upper half of the last
zxid; a leader that was cut off still says that it leads until its time is over, hence ``term``.
Reference: ZooKeeper Administrator's Guide, "The Four Letter Words".
"""

from __future__ import annotations

import itertools
import re
import struct
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

from compose.families.base import Family
from compose.families.zookeeper_wire import ClosedError, Connection, Session, words
from compose.waiting import wait_until
from harness.core import limits
from harness.core.clock import NS_PER_MS, MonotonicClock
from harness.core.errors import HarnessError
from harness.core.protocols import ClockReading, Probe

CLOCK_READINGS = 3
_CLOCK = MonotonicClock()
_ROLES = {"leader": "primary", "follower": "replica"}
# Numbers of echoes: greater than those of every process that asked before, on this machine.
_echo = itertools.count(time.time_ns() // 1000)


class ZookeeperFamily(Family):
    """``Family`` for ZooKeeper 3.8 and later."""

    name = "zookeeper"
    replicated = True

    def probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        """rtt_ns counts from sending, without the connect."""
        number = next(_echo)
        try:
            connection = Connection(host, port, timeout_ms)
        except TimeoutError:
            return Probe("silent")
        except OSError:
            return Probe("refused")
        with connection:
            sent_ns = _CLOCK.now()
            try:
                connection.send(b"stmk" + struct.pack(">q", number))
                answer = connection.rest()
            except TimeoutError:
                return Probe("silent")
            except (ClosedError, OSError):
                return Probe("closed")
            if answer != str(number).encode():
                return Probe("closed")
            return Probe("answered", _CLOCK.now() - sent_ns)

    def facts(
        self, host: str, port: int, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
    ) -> dict[str, Any]:
        """See ``Family.facts``; ``keys`` are nodes, 0 while it serves none."""
        environment = words(host, port, b"envi", timeout_ms)
        mask = words(host, port, b"gtmk", timeout_ms)
        state = words(host, port, b"srvr", timeout_ms)
        mode = _found(r"^Mode: (\w+)$", state) or ""
        zxid = _found(r"^Zxid: 0x([0-9a-f]+)$", state) or "0"
        version = _found(r"^zookeeper\.version=(\d[\d.]*)", environment)
        run = _found(r"^java\.io\.tmpdir=(\S+)$", environment)
        if not (version and run and mask.strip().isdigit()):
            raise HarnessError(
                f"server at {host}:{port}: envi or gtmk lack version, folder or mask: "
                f"{environment[:200]!r}, {mask[:50]!r}"
            )
        return {
            "role": _ROLES.get(mode, "member"),
            "server": "zookeeper",
            "version": version,
            "run_id": run,
            "term": int(zxid, 16) >> 32,
            "echoes": int(mask),
            "keys": int(_found(r"^Node count: (\d+)$", state) or 0),
            "persistent": True,
        }

    def check_ready(self, host: str, port: int) -> None:
        """It has a leader or is one, and so makes sessions."""
        state = words(host, port, b"srvr", limits.EVIDENCE_TIMEOUT_MS)
        if not _found(r"^Mode: (\w+)$", state):
            raise HarnessError(f"server at {host}:{port}: {state.strip()[:200]}")

    def clock(self, host: str, port: int) -> ClockReading:
        """By the time at which it saw a connection of ours, which "cons" tells in ms.  To make a
        session is a write of the quorum, so the window is wide: the narrowest of some counts."""
        readings = (self._reading(host, port) for _ in range(CLOCK_READINGS))
        return min(readings, key=attrgetter("error_ns"))

    def _reading(self, host: str, port: int) -> ClockReading:
        before_ns = time.time_ns()
        with self._session(host, port) as session:
            after_ns = time.time_ns()
            connections = words(host, port, b"cons", limits.EVIDENCE_TIMEOUT_MS)
            seen = _found(rf"sid=0x{session.identity:x},.*\best=(\d+)", connections)
        if seen is None:
            raise HarnessError(f"server at {host}:{port}: cons does not list a session of ours")
        there_ns = int(seen) * NS_PER_MS + NS_PER_MS // 2
        error_ns = (after_ns - before_ns + NS_PER_MS) // 2
        return ClockReading(there_ns - (before_ns + after_ns) // 2, error_ns)

    def leave_mark(self, host: str, port: int, mark: str) -> None:
        with self._session(host, port) as session:
            session.create(f"/{mark}", b"")

    def has_mark(self, host: str, port: int, mark: str) -> bool:
        with self._session(host, port) as session:
            return session.exists(f"/{mark}")

    def command(self, host: str, port: int, words: Sequence[str]) -> str:
        """``deleteall PATH``, as of its shell: a node and all below it, here also for "/"."""
        if len(words) != 2 or words[0] != "deleteall":
            raise HarnessError(f"ZooKeeper cannot be told {' '.join(words)!r}, but deleteall PATH")
        with self._session(host, port) as session:
            _delete_all(session, words[1].rstrip("/"))
        return ""

    def has_session(self, host: str, port: int, identity: str) -> bool:
        """By the leader's list; another server lists none that owns no node: ask the primary."""
        dump = words(host, port, b"dump", limits.EVIDENCE_TIMEOUT_MS)
        return re.search(rf"^\s*{identity}:?$", dump, re.MULTILINE) is not None

    def sessions(self, host: str, port: int, name: str) -> list[str]:
        """Ids of the sessions one of whose ephemeral nodes has ``name`` as its data: a client that
        neither holds nor waits for a lock has no such node."""
        dump = words(host, port, b"dump", limits.EVIDENCE_TIMEOUT_MS)
        owned = dump.partition("Sessions with Ephemerals")[2].partition("Connections dump")[0]
        found = []
        with self._session(host, port) as session:
            owner = ""
            for line in owned.splitlines()[1:]:
                if not line.startswith("\t"):
                    owner = line.strip().rstrip(":")
                elif owner not in found:
                    node = session.get(line.strip())
                    if node is not None and node[0] == name.encode():
                        found.append(owner)
        return found

    def end_session(self, host: str, port: int, identity: str) -> None:
        """Takes the session up with its own id and password, and closes it.

        Its client comes back at once and takes it up in turn, which cuts this connection off:
        before the end was asked for, or only before it was answered.  So the server's list decides
        whether that was the end, and if not, it is tried again.
        """
        trouble = ""

        def ended() -> bool:
            nonlocal trouble
            try:
                with self._session(host, port, int(identity, 16)):
                    pass  # closed at once
            except HarnessError as error:
                trouble = f"{trouble or error}"
                return not self.has_session(host, port, identity)
            return True

        if not wait_until(ended, timeout_s=limits.HEAL_TIMEOUT_MS / 1000):
            raise HarnessError(
                f"session {identity} is still known after {limits.HEAL_TIMEOUT_MS} ms of "
                f"attempts to end it: {trouble}"
            )

    def _session(self, host: str, port: int, identity: int = 0) -> AbstractContextManager[Session]:
        # Making and ending a session are writes of the quorum: slow on a busy machine, not lost.
        return Session.open(host, port, timeout_ms=limits.HEAL_TIMEOUT_MS, identity=identity)


def _delete_all(session: Session, path: str) -> None:
    """What was there when it was asked; "/zookeeper" is the service's own."""
    for name in session.children(path or "/"):
        if path or name != "zookeeper":
            _delete_all(session, f"{path}/{name}")
    if path:
        session.delete(path)


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None
