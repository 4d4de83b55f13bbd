"""ZooKeeper's two tongues by bare socket: words of four letters, and its client protocol.

    words(host, port, b"srvr", 2000)                  # "Zookeeper version: 3.9.3-…\\nLatency …"
    with Session.open(host, port, timeout_ms=2000) as session:
        session.create("/mark", b"1")
        data, stat = session.get("/mark")

The client protocol is records in network byte order, each with its length in front: a connect
request makes or takes up a session, then requests (a header and a record) and replies follow each
other.  What is not needed here is left out: watches, SASL, multi.

Traps.  A server that has no leader closes the connection instead of making a session, though it
answers words.  A session that was taken up and is unknown is answered with a time-out of 0.  The
password of a session is a function of its id (``ZooKeeperServer.generatePasswd``), so whoever
knows the id can take the session up, which is how its end is brought about from outside.
Reference: zookeeper.jute and ZooKeeperServer.java in ZooKeeper's sources.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from harness.core.clock import NS_PER_S, MonotonicClock, ms
from harness.core.errors import AnsweredError, HarnessError

CREATE, DELETE, EXISTS, GET_DATA, GET_CHILDREN, CLOSE = 1, 2, 3, 4, 8, -11
NO_NODE, NODE_EXISTS, NOT_EMPTY = -101, -110, -111
SESSION_MS = 10_000  # of our own short sessions: they are closed, and if not, end by themselves

_CLOCK = MonotonicClock()  # a socket's deadline is real time, also where the run's clock is not
_BYTES_MAX = 4 << 20  # "dump" of a thousand sessions is 100 kB
_STAT = struct.Struct(">qqqqiiiqiiq")


class ClosedError(Exception):
    """The other side closed the connection before the answer was whole."""


class Stat(NamedTuple):
    """What the server knows of a node; times in ms of its leader's wall clock."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    children: int
    pzxid: int


class Connection:
    """A socket with one deadline over all that is done with it.

    OSError (TimeoutError among them) as of a socket, ClosedError at its end.
    """

    def __init__(self, host: str, port: int, timeout_ms: int) -> None:
        self._deadline_ns = _CLOCK.now() + ms(timeout_ms)
        self._socket = socket.create_connection((host, port), timeout=timeout_ms / 1000)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._limit()
        self._socket.sendall(data)

    def take(self, size: int) -> bytes:
        """Exactly so many bytes."""
        if not 0 <= size <= _BYTES_MAX:
            raise ClosedError(f"a record of {size} bytes: this is no ZooKeeper")
        received = b""
        while len(received) < size:
            data = self._receive(size - len(received))
            if not data:
                raise ClosedError("connection closed")
            received += data
        return received

    def rest(self) -> bytes:
        """All that comes until the other side closes."""
        received = b""
        while data := self._receive(65536):
            received += data
            if len(received) > _BYTES_MAX:
                raise ClosedError(f"more than {_BYTES_MAX} bytes: this is no ZooKeeper")
        return received

    def _receive(self, size: int) -> bytes:
        self._limit()
        return self._socket.recv(size)

    def _limit(self) -> None:
        left_ns = self._deadline_ns - _CLOCK.now()
        if left_ns <= 0:
            raise TimeoutError
        self._socket.settimeout(left_ns / NS_PER_S)


def words(host: str, port: int, word: bytes, timeout_ms: int) -> str:
    """The answer to a word of four letters.  HarnessError if there is none in time."""
    with (
        _reported(host, port, word.decode(), timeout_ms),
        Connection(host, port, timeout_ms) as connection,
    ):
        connection.send(word)
        return connection.rest().decode(errors="replace")


class Session:
    """A session of the client protocol; ``with`` closes it.  HarnessError if no answer comes,
    AnsweredError if the server answers with an error."""

    def __init__(self, connection: Connection, where: tuple[str, int, int], identity: int) -> None:
        self.identity = identity  # 0: the server does not know the session that was asked for
        self._connection, self._where, self._xid = connection, where, 0

    @classmethod
    @contextmanager
    def open(cls, host: str, port: int, *, timeout_ms: int, identity: int = 0) -> Iterator[Session]:
        """A new session, or the one of this id, taken up (from its client, if that is there)."""
        where = (host, port, timeout_ms)
        password = password_of(identity) if identity else bytes(16)
        request = struct.pack(">iqiq", 0, 0, SESSION_MS, _signed(identity)) + _buffer(password)
        with _reported(host, port, "a session", timeout_ms):
            connection = Connection(host, port, timeout_ms)
        with connection:
            with _reported(host, port, "a session", timeout_ms):
                connection.send(_buffer(request + b"\0"))
                answer = connection.take(*struct.unpack(">i", connection.take(4)))
            session = cls(connection, where, struct.unpack_from(">q", answer, 8)[0] % (1 << 64))
            yield session
            try:
                if session.identity:
                    session._call("the end of a session", CLOSE, b"")
            except HarnessError:
                if identity:  # one of our own ends by itself, and what it was made for is done
                    raise

    def create(self, path: str, data: bytes) -> bool:
        """Makes a lasting node; False if it was there."""
        acl = struct.pack(">ii", 1, 31) + _buffer(b"world") + _buffer(b"anyone")
        body = _buffer(path.encode()) + _buffer(data) + acl + struct.pack(">i", 0)
        return self._call(f"create {path}", CREATE, body, allowed=(NODE_EXISTS,)) is not None

    def exists(self, path: str) -> bool:
        body = _buffer(path.encode()) + b"\0"
        return self._call(f"exists {path}", EXISTS, body, allowed=(NO_NODE,)) is not None

    def get(self, path: str) -> tuple[bytes, Stat] | None:
        """Data and stat of a node, None if there is none."""
        body = _buffer(path.encode()) + b"\0"
        answer = self._call(f"get {path}", GET_DATA, body, allowed=(NO_NODE,))
        if answer is None:
            return None
        size = max(0, struct.unpack_from(">i", answer)[0])
        return answer[4 : 4 + size], Stat(*_STAT.unpack_from(answer, 4 + size))

    def children(self, path: str) -> list[str]:
        """Names of the nodes below one, [] if it is gone."""
        body = _buffer(path.encode()) + b"\0"
        answer = self._call(f"children of {path}", GET_CHILDREN, body, allowed=(NO_NODE,))
        if answer is None:
            return []
        names, at = [], 4
        for _ in range(struct.unpack_from(">i", answer)[0]):
            (size,) = struct.unpack_from(">i", answer, at)
            names.append(answer[at + 4 : at + 4 + size].decode())
            at += 4 + size
        return names

    def delete(self, path: str) -> None:
        """Removes a node, whatever its version; not one that is gone or has got children."""
        body = _buffer(path.encode()) + struct.pack(">i", -1)
        self._call(f"delete {path}", DELETE, body, allowed=(NO_NODE, NOT_EMPTY))

    def _call(
        self, what: str, kind: int, body: bytes, *, allowed: tuple[int, ...] = ()
    ) -> bytes | None:
        """Body of the reply; None if the server answers with an error of ``allowed``."""
        self._xid += 1
        host, port, timeout_ms = self._where
        with _reported(host, port, what, timeout_ms):
            self._connection.send(_buffer(struct.pack(">ii", self._xid, kind) + body))
            answer = self._connection.take(*struct.unpack(">i", self._connection.take(4)))
        xid, _, error = struct.unpack_from(">iqi", answer)
        if xid != self._xid:
            raise HarnessError(f"server at {host}:{port} answered {xid} to {what} ({self._xid})")
        if error and error not in allowed:
            raise AnsweredError(f"server answered {what} with the error {error}")
        return None if error else answer[16:]


def password_of(identity: int) -> bytes:
    """The password of a session: 16 bytes of Java's ``Random``, seeded by its id."""
    mask, factor = (1 << 48) - 1, 0x5DEECE66D
    seed = ((identity ^ 0xB3415C00) ^ factor) & mask
    numbers = []
    for _ in range(4):
        seed = (seed * factor + 0xB) & mask
        numbers.append(seed >> 16)
    return struct.pack("<4I", *numbers)


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _signed(identity: int) -> int:
    return identity - (1 << 64) if identity >= 1 << 63 else identity


@contextmanager
def _reported(host: str, port: int, what: str, timeout_ms: int) -> Iterator[None]:
    """Troubles with a socket as HarnessError."""
    try:
        yield
    except TimeoutError as error:
        raise HarnessError(
            f"server at {host}:{port} gave no answer to {what} in {timeout_ms} ms"
        ) from error
    except (ClosedError, OSError) as error:
        raise HarnessError(f"server at {host}:{port} did not answer {what}: {error}") from error
