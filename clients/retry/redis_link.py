"""One connection to a Redis or Valkey server with a time limit on everything; no library needed.

    redis = Redis("redis://127.0.0.1:6379/0", timeout_s=1.0)
    redis.call("RPUSH", "dead", "{}")          # 1; OSError, RedisSaid if it cannot be done

For what the retry layer keeps in a server (dead letters, halts); the locks themselves belong to
the user's own library.  Answers: str, int, None, lists of these.

Traps: a command is never sent twice.  After any trouble the connection is closed, since a late
answer would be taken for the next one's; the next call connects anew.  The address may hold a
password, so it is never part of a message.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from harness.core.errors import UserError

BYTES_MAX = 64 << 20  # of one answer


class RedisSaid(Exception):
    """The server answered with an error."""


class Redis:
    """See the module; may be used by several threads."""

    def __init__(self, url: str, timeout_s: float = 1.0, name: str | None = None) -> None:
        try:
            parts = urlsplit(url)
            port, host = parts.port or 6379, parts.hostname
            database = int(parts.path.strip("/") or 0)
        except ValueError as error:
            raise UserError(f"Redis URL: {error}; use redis://HOST:PORT/DB") from error
        if parts.scheme != "redis" or not host:
            raise UserError("Redis URL: must be redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]")
        self.host, self.port, self.timeout_s = host, port, timeout_s
        self._opening: list[tuple[str, ...]] = []
        if parts.password:
            user = (unquote(parts.username),) if parts.username else ()
            self._opening.append(("AUTH", *user, unquote(parts.password)))
        if database:
            self._opening.append(("SELECT", str(database)))
        if name is not None:  # by which the server lists its clients
            self._opening.append(("CLIENT", "SETNAME", name))
        self._guard = threading.Lock()
        self._socket: socket.socket | None = None
        self._buffer = b""
        self._deadline = 0.0

    def __repr__(self) -> str:
        return f"Redis({self.host}:{self.port})"

    def call(self, *words: str | bytes | int, more_s: float = 0.0) -> Any:
        """The answer to one command; ``more_s`` is added to the limit for one that waits."""
        with self._guard:
            self._deadline = time.monotonic() + self.timeout_s + more_s
            try:
                if self._socket is None:
                    self._open()
                return self._exchange(words)
            except RedisSaid:
                raise
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """Closes the connection; a later call opens another."""
        with self._guard:
            self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> None:
        self._buffer = b""
        self._socket = socket.create_connection((self.host, self.port), self._left_s())
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for words in self._opening:
                self._exchange(words)
        except BaseException:
            self._drop()  # one that is not logged in must not be used
            raise

    def _drop(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket = None

    def _left_s(self) -> float:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"no answer of {self!r} in time")
        return left_s

    def _exchange(self, words: tuple[str | bytes | int, ...]) -> Any:
        assert self._socket is not None
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
        self._socket.settimeout(self._left_s())
        self._socket.sendall(b"".join(parts))
        return self._answer()

    def _answer(self) -> Any:
        while b"\r\n" not in self._buffer:
            self._receive()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        kind, rest = line[:1], line[1:].decode(errors="replace")
        if kind == b"-":
            raise RedisSaid(rest)
        if kind == b"+":
            return rest
        if kind not in (b":", b"$", b"*"):
            raise ConnectionError(f"what answers at {self!r} is no Redis")
        number = int(rest)
        if kind == b":":
            return number
        if number < 0:
            return None
        if kind == b"*":
            return [self._answer() for _ in range(number)]
        while len(self._buffer) < number + 2:
            self._receive()
        data, self._buffer = self._buffer[:number], self._buffer[number + 2 :]
        return data.decode(errors="replace")

    def _receive(self) -> None:
        assert self._socket is not None
        self._socket.settimeout(self._left_s())
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError(f"{self!r} closed the connection")
        self._buffer += data
        if len(self._buffer) > BYTES_MAX:
            raise ConnectionError(f"{self!r} answered more than {BYTES_MAX} bytes")
