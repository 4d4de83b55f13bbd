"""Client of the protected resource: one TCP connection, one JSON line per request and reply.

Writes go from the worker straight to the resource, so that the write of a holder that was paused
really arrives late.  What matters here is which failures are definite:

- no connection, or found closed before a byte was sent: ``NotSent``, surely no effect;
- anything after that: ``LostReply``, the write may have been accepted.

Trap: after ``LostReply`` the connection is dropped; a late reply must not answer the next request.
"""

from __future__ import annotations

import json
import select
import socket
from typing import Any

from clients.worker.adapter import Refused, Unknown

TIMEOUT_S = 5.0  # on loopback a reply takes less than a millisecond
REPLY_BYTES_MAX = 16 << 20  # a page of the log; anything longer is not the resource


class NotSent(Refused):
    """The request did not leave this process."""


class LostReply(Unknown):
    """The request may have arrived; no reply came."""


class ResourceClient:
    """``ask`` sends one request and returns its reply.  Not thread safe: one worker, one client."""

    def __init__(self, host: str, port: int, timeout_s: float = TIMEOUT_S) -> None:
        self.host = host
        self.port = port
        self.timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._pending = b""
        self._next_id = 0

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Sends ``message`` (with a fresh ``id``) and returns the reply object."""
        connection = self._connected()
        self._next_id += 1
        line = json.dumps({"id": self._next_id, **message}, separators=(",", ":")) + "\n"
        try:
            connection.sendall(line.encode("ascii"))
            reply = json.loads(self._read_line(connection))
        except (OSError, ValueError) as error:
            self.close()
            raise LostReply(f"resource: {type(error).__name__}: {error}") from error
        if not isinstance(reply, dict) or reply.get("id") != self._next_id:
            self.close()
            raise LostReply(f"resource: the reply is not for request {self._next_id}")
        return reply

    def close(self) -> None:
        """Drops the connection; the next ``ask`` makes a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._pending = b""

    def _connected(self) -> socket.socket:
        if self._socket is not None and _hung_up(self._socket):
            self.close()
        if self._socket is None:
            try:
                self._socket = socket.create_connection((self.host, self.port), self.timeout_s)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                self.close()
                raise NotSent(f"resource: cannot connect: {error}") from error
        return self._socket

    def _read_line(self, connection: socket.socket) -> bytes:
        while True:
            line, newline, rest = self._pending.partition(b"\n")
            if newline:
                self._pending = rest
                return line
            data = connection.recv(1 << 16)
            if not data:
                raise ConnectionResetError("closed without a reply")
            self._pending += data
            if len(self._pending) > REPLY_BYTES_MAX:
                raise ValueError(f"a reply is longer than {REPLY_BYTES_MAX} bytes")


def _hung_up(connection: socket.socket) -> bool:
    """True if an idle connection has something to read: its end, or what nobody asked for.

    Not recv(MSG_DONTWAIT): on a socket with a time limit Python would wait for data first.
    """
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(0))
