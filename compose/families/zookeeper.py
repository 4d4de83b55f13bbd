"""ZooKeeper as a family of servers; its protocols are in ``zookeeper_wire.py``.

    ZookeeperFamily().probe("127.0.0.1", 2181, 250)        # Probe(outcome="answered", rtt_ns=…)
    ZookeeperFamily().facts("127.0.0.1", 2181)["role"]     # "primary": the leader of the quorum

The echo is the word ``stmk``, which sets the server's trace mask to the eight bytes that follow and
is answered with them; ``gtmk`` reads the mask.  No client library sends it, it is kept by the one
server that it reached, whether or not that has a leader, and a mask changes nothing while tracing
is off.  So the mask is the last echo that arrived: echoes are numbered, by a clock that only goes
up, and ``facts()["echoes"]`` is greater if one has arrived.

At the port for elections the echo is a vote of a server that is none of the ensemble: every server
answers such a vote with its own.

Traps.  A server without a leader answers words but serves nothing ("not currently serving"): then
its role is *member* and it has no keys.  ``srvr`` tells the epoch in the upper half of the last
zxid; a leader that was cut off still says that it leads until its time is over, hence ``term``.
Reference: ZooKeeper Administrator's Guide, "The Four Letter Words"; QuorumCnxManager.java and
FastLeaderElection.java in its sources.
"""

from __future__ import annotations

import itertools
import random
import re
import struct
import time
from typing import Any

from compose.families.base import Family
from compose.families.zookeeper_wire import ClosedError, Connection, Session, words
from harness.core import limits
from harness.core.clock import MonotonicClock
from harness.core.errors import HarnessError
from harness.core.protocols import Probe

_CLOCK = MonotonicClock()
_ROLES = {"leader": "primary", "follower": "replica"}
_ELECTION_V1 = -65536  # first number of a connection for elections
_LOOKING = 0
_STRANGERS = (1 << 40, 1 << 41)  # ids of servers that no ensemble has

# Numbers of echoes: greater than those of every process that asked before, on this machine.
_echo = itertools.count(time.time_ns() // 1000)


class ZookeeperFamily(Family):
    """``Family`` for ZooKeeper 3.8 and later."""

    name = "zookeeper"

    def probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        number = next(_echo)

        def echo(connection: Connection) -> None:
            connection.send(b"stmk" + struct.pack(">q", number))
            if connection.rest() != str(number).encode():
                raise ClosedError("no answer to this echo")

        return _probe(host, port, timeout_ms, echo)

    def peer_probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        """The vote of a stranger at the port for elections, and the vote that comes back."""
        return _probe(host, port, timeout_ms, _vote)

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

    def sessions(self, host: str, port: int, name: str) -> list[str]:
        """Ids of the sessions one of whose ephemeral nodes has ``name`` as its data: a client that
        neither holds nor waits for a lock has no such node."""
        dump = words(host, port, b"dump", limits.EVIDENCE_TIMEOUT_MS)
        owned = dump.partition("Sessions with Ephemerals")[2].partition("Connections dump")[0]
        found = []
        with Session.open(host, port, timeout_ms=limits.EVIDENCE_TIMEOUT_MS) as session:
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
        """Takes the session up with its own id and password, and closes it."""
        session = int(identity, 16)
        with Session.open(host, port, timeout_ms=limits.EVIDENCE_TIMEOUT_MS, identity=session):
            pass  # closed at once


def _probe(host: str, port: int, timeout_ms: int, echo: Any) -> Probe:
    try:
        connection = Connection(host, port, timeout_ms)
    except TimeoutError:
        return Probe("silent")
    except OSError:
        return Probe("refused")
    with connection:
        sent_ns = _CLOCK.now()
        try:
            echo(connection)
        except TimeoutError:
            return Probe("silent")
        except (ClosedError, OSError):
            return Probe("closed")
        return Probe("answered", _CLOCK.now() - sent_ns)


def _vote(connection: Connection) -> None:
    stranger = random.randrange(*_STRANGERS)
    address = b"127.0.0.1:1"  # nobody dials it: the greater id has made the connection
    vote = struct.pack(">iqqqqi", _LOOKING, stranger, 0, 0, 0, 0)
    hello = struct.pack(">qqi", _ELECTION_V1, stranger, len(address)) + address
    connection.send(hello + struct.pack(">i", len(vote)) + vote)
    (size,) = struct.unpack(">i", connection.take(4))
    connection.take(size)


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None
