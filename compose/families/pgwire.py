"""PostgreSQL's wire protocol, as much of it as a question and its answer need, on a bare socket.

    ask("127.0.0.1", 5432, "SELECT pg_is_in_recovery()")      # [["f"]]
    ask("127.0.0.1", 5432, "SELECT %s::text", "it's")         # [["it's"]]
    python -m compose.families.pgwire 127.0.0.1 5432 RUN_ID SQL...      # an undo step

Why no driver: it would talk before it is asked to (settings, GSS, TLS), keep connections, and blur
*silent*, *closed* and *refused*.  Here the start-up packet and the question go out together, so one
question is one packet and arrives or does not, whatever becomes of the answers; a server (or
PgBouncer) with ``trust`` authentication needs no more.

Traps: an error is an answer, with an SQLSTATE; the server goes on after it and must be read until
it says that it is ready.  A statement that the server itself ended (57P01) closes the connection
right after the error.  Format: PostgreSQL documentation, "Message Formats" (protocol 3.0).
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from harness.core import limits
from harness.core.clock import NS_PER_S, MonotonicClock, ms
from harness.core.errors import AnsweredError, HarnessError

_CLOCK = MonotonicClock()  # a socket's deadline is real time, also where the run's clock is not
_PROTOCOL = 3 << 16
_MESSAGE_BYTES_MAX = 1 << 20  # what we ask for is some hundred bytes
_TRUST = 0
APPLICATION = "lockhavoc-harness"
Rows = list[list[str]]


class Closed(Exception):
    """The other side closed the connection before the answer was whole."""


class SqlError(AnsweredError):
    """The server answered with an error; ``state`` is its SQLSTATE, e.g. 25006."""

    def __init__(self, state: str, text: str) -> None:
        super().__init__(f"server answered with an error: {state} {text}")
        self.state = state


class Connection:
    """A socket with one deadline over all that is done with it.

    OSError as for ``socket.create_connection``; TimeoutError if that takes too long.
    """

    def __init__(self, host: str, port: int, timeout_ms: int) -> None:
        self._deadline_ns = _CLOCK.now() + ms(timeout_ms)
        self._socket = socket.create_connection((host, port), timeout=timeout_ms / 1000)
        self._buffer = b""
        self.columns: list[str] = []  # names of the last answer's

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def ask(self, sql: str, *, database: str = "postgres") -> Rows:
        """Says who we are and asks, in one packet; returns the rows as text (NULL is "").

        No good-bye in that packet: PgBouncer would take it for a client that left before its
        answer.  SqlError, Closed, OSError, TimeoutError.
        """
        settings = ("user", "postgres", "database", database, "application_name", APPLICATION)
        start = b"".join(word.encode() + b"\0" for word in settings) + b"\0"
        packet = struct.pack("!ii", len(start) + 8, _PROTOCOL) + start
        self._send(packet + _message(b"Q", sql.encode() + b"\0"))
        self._answer(starting=True)
        return self._answer()

    def again(self, sql: str) -> Rows:
        """Another question after ``ask``: no start-up of a session delays its answer."""
        self._send(_message(b"Q", sql.encode() + b"\0"))
        return self._answer()

    def _answer(self, *, starting: bool = False) -> Rows:
        """Rows up to the next "ready"; there is one for the start-up, too."""
        rows: Rows = []
        failure: SqlError | None = None
        for kind, body in self._messages():
            if kind == b"R" and struct.unpack("!i", body[:4])[0] != _TRUST:
                raise SqlError("28000", "it wants a password; pg_hba.conf must say trust")
            if kind == b"T":
                self.columns = _columns(body)
            elif kind == b"D":
                rows.append(_row(body))
            elif kind == b"E":
                failure = failure or _error(body)
                if starting or failure.state.startswith("57P"):
                    break  # it closes now: no session for us, or none any more
            elif kind == b"Z":
                break
        if failure is not None:
            raise failure
        return rows

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        while True:
            head = self._read(5)
            (size,) = struct.unpack("!i", head[1:])
            if not 4 <= size <= _MESSAGE_BYTES_MAX:
                raise HarnessError(f"server sent a message of {size} bytes; this is no PostgreSQL")
            yield head[:1], self._read(size - 4)

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._set_timeout()
            data = self._socket.recv(65536)
            if not data:
                raise Closed
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _send(self, data: bytes) -> None:
        self._set_timeout()
        self._socket.sendall(data)

    def _set_timeout(self) -> None:
        left_ns = self._deadline_ns - _CLOCK.now()
        if left_ns <= 0:
            raise TimeoutError
        self._socket.settimeout(left_ns / NS_PER_S)


def ask(
    host: str,
    port: int,
    sql: str,
    *values: str,
    database: str = "postgres",
    timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS,
) -> Rows:
    """One question on a connection of its own; values stand for %s in it.  SqlError for an error
    answer (an AnsweredError), HarnessError if there is no answer within ``timeout_ms``."""
    if values:
        sql %= tuple(quote(value) for value in values)
    return _ask(host, port, sql, database, timeout_ms)[1]


def table(
    host: str,
    port: int,
    sql: str,
    *,
    database: str = "postgres",
    timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS,
) -> list[dict[str, str]]:
    """The same, each row with the names of its columns."""
    columns, rows = _ask(host, port, sql, database, timeout_ms)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _ask(host: str, port: int, sql: str, database: str, timeout_ms: int) -> tuple[list[str], Rows]:
    with talk(host, port, sql, timeout_ms=timeout_ms) as connection:
        rows = connection.ask(sql, database=database)
        return connection.columns, rows


@contextmanager
def talk(
    host: str, port: int, what: str, *, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
) -> Iterator[Connection]:
    """A connection whose failures are HarnessErrors that say ``what`` was asked."""
    try:
        with Connection(host, port, timeout_ms) as connection:
            yield connection
    except TimeoutError as error:
        raise HarnessError(
            f"server at {host}:{port} gave no answer to {what[:40]!r} in {timeout_ms} ms"
        ) from error
    except (Closed, OSError) as error:
        raise HarnessError(
            f"server at {host}:{port} did not answer {what[:40]!r}: "
            f"{str(error) or 'it closed the connection'}"
        ) from error


def quote(text: str) -> str:
    """``text`` as an SQL literal; ValueError for what none can hold."""
    if "\0" in text or "\\" in text:
        raise ValueError(f"{text!r} cannot be an SQL literal here")
    return "'" + text.replace("'", "''") + "'"


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _columns(body: bytes) -> list[str]:
    (count,) = struct.unpack("!h", body[:2])
    at, names = 2, []
    for _ in range(count):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode(errors="replace"))
        at = end + 1 + 18  # table, number, type, size, modifier, format
    return names


def _row(body: bytes) -> list[str]:
    (count,) = struct.unpack("!h", body[:2])
    at, cells = 2, []
    for _ in range(count):
        (size,) = struct.unpack("!i", body[at : at + 4])
        at += 4
        cells.append(body[at : at + max(size, 0)].decode(errors="replace"))
        at += max(size, 0)
    return cells


def _error(body: bytes) -> SqlError:
    fields = {
        part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part != b""
    }
    return SqlError(fields.get(b"C", "?"), fields.get(b"M", "no text"))


def main(argv: list[str]) -> int:
    """host port run_id SQL...: carries them out if it is still the same start of the server."""
    host, port, run_id, *statements = argv
    if host != "127.0.0.1":
        raise HarnessError(f"undo step calls {host}, which is not on loopback")
    try:
        with Connection(host, int(port), limits.EVIDENCE_TIMEOUT_MS) as connection:
            ((there,),) = connection.ask("SELECT extract(epoch FROM pg_postmaster_start_time())")
    except (Closed, ConnectionError):
        return 0  # nobody is there any more
    if there == run_id:
        for statement in statements:
            ask(host, int(port), statement)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
