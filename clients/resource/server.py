"""The resource's socket side: one thread, so all requests are decided one after the other.

JSON lines over TCP on 127.0.0.1.  Each round of the loop reads what has arrived on all
connections, decides it in order, commits once and only then replies: a group commit that costs a
lone client nothing and many clients less.

    -> {"id":1,"do":"write","key":"k","hold":"0-1","token":3,"value":"a","expect":null}
    <- {"id":1,"ok":true,"seq":1,"time":123,"version":1,"highest":3}
    <- {"id":2,"ok":false,"why":"stale","seq":2,"time":125,"version":1,"highest":3}
    -> {"id":3,"do":"read","key":"k"}
    <- {"id":3,"ok":true,"value":"a","version":1,"highest":3}
    -> {"id":4,"do":"log","after":0}
    <- {"id":4,"ok":true,"records":[...],"next":2}

Traps: a request that is malformed is answered ``ok: false`` with the reason and is not in the log
(it names no write).  If SQLite fails (disk full), the process stops at once without replying: the
workers then record unknown outcomes, which is the truth.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
from pathlib import Path
from typing import Any, Literal

import msgspec

from clients.resource.store import INTEGER_MAX, Store, Write
from harness.core.limits import LINE_BYTES_MAX

HOST = "127.0.0.1"
LOG_PAGE = 1000  # records in one reply
OUTPUT_BYTES_MAX = 8 << 20  # unread replies of one client; more means that it does not read
READ_BYTES = 1 << 16


class Request(msgspec.Struct, frozen=True):
    """One request; unused fields stay at their defaults."""

    id: int
    do: Literal["write", "read", "log"]
    key: str | None = None
    hold: str | None = None
    token: int | None = None
    value: Any = None
    expect: int | None = None
    after: int = 0
    limit: int = LOG_PAGE


class Connection:
    """One client: its socket, what it sent that is no whole line yet, what it has not read."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = b""
        self.replies = bytearray()
        self.closing = False


class Server:
    """Serves one store until ``stop`` (a signal) or EOF on the lifeline."""

    def __init__(self, directory: Path, mode: str, port: int = 0, *, lifeline: int | None = None):
        self.store = Store(directory, mode)
        self._listener = socket.create_server((HOST, port), backlog=256)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, "listener")
        self._decoder = msgspec.json.Decoder(Request)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, "stop")
        if lifeline is not None:
            self._selector.register(lifeline, selectors.EVENT_READ, "lifeline")
        self.port: int = self._listener.getsockname()[1]
        self._stopping = False

    def stop(self) -> None:
        """Makes ``serve`` return; safe in a signal handler."""
        self._stopping = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b".")

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT stop the server in order."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())

    def serve(self) -> None:
        """The loop: read, decide, commit, reply."""
        try:
            while not self._stopping:
                self._round()
        finally:
            self.store.close()
            for key in list(self._selector.get_map().values()):
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()
            self._selector.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _round(self) -> None:
        touched: list[Connection] = []
        for key, events in self._selector.select():
            if key.data == "listener":
                self._accept()
            elif key.data == "lifeline":
                self._stopping = self._stopping or not os.read(key.fd, READ_BYTES)
            elif key.data != "stop":
                if events & selectors.EVENT_READ:
                    self._receive(key.data)
                touched.append(key.data)
        self.store.commit()
        for connection in touched:
            self._flush(connection)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            sock, _ = self._listener.accept()
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(sock, selectors.EVENT_READ, Connection(sock))

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            connection.closing = True
            return
        *lines, connection.received = (connection.received + data).split(b"\n")
        for line in lines:
            connection.replies += msgspec.json.encode(self._answer(line)) + b"\n"
        if len(connection.received) > LINE_BYTES_MAX:
            why = f"malformed: a line is longer than {LINE_BYTES_MAX} bytes"
            connection.replies += msgspec.json.encode({"id": 0, "ok": False, "why": why}) + b"\n"
            connection.received = b""
            connection.closing = True

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = self._decoder.decode(line)
        except msgspec.DecodeError as error:
            return {"id": _id_of(line), "ok": False, "why": f"malformed: {error}"}
        problem = _problem(request)
        if problem:
            return {"id": request.id, "ok": False, "why": f"malformed: {problem}"}
        if request.do == "log":
            self.store.commit()
            records = self.store.log(request.after, request.limit)
            following = records[-1]["seq"] if len(records) == request.limit else None
            return {"id": request.id, "ok": True, "records": records, "next": following}
        assert request.key is not None
        if request.do == "read":
            slot = self.store.read(request.key)
            facts = {"value": slot.value, "version": slot.version, "highest": slot.highest}
            return {"id": request.id, "ok": True, **facts}
        write = Write(request.key, request.hold, request.token, request.value, request.expect)
        decision = self.store.write(write)
        reply: dict[str, Any] = {"id": request.id, "ok": not decision.why}
        if decision.why:
            reply["why"] = decision.why
        return reply | {
            "seq": decision.seq,
            "time": decision.time,
            "version": decision.version,
            "highest": decision.highest,
        }

    def _flush(self, connection: Connection) -> None:
        try:
            if connection.replies:
                sent = connection.sock.send(connection.replies)
                del connection.replies[:sent]
        except BlockingIOError:
            pass
        except OSError:
            connection.closing = True
            connection.replies.clear()
        full = len(connection.replies) > OUTPUT_BYTES_MAX
        if full or (connection.closing and not connection.replies):
            self._selector.unregister(connection.sock)
            connection.sock.close()
            return
        events = 0 if connection.closing else selectors.EVENT_READ
        if connection.replies:
            events |= selectors.EVENT_WRITE
        if self._selector.get_key(connection.sock).events != events:
            self._selector.modify(connection.sock, events, connection)


def _problem(request: Request) -> str:
    """What is wrong with a decoded request, "" if nothing."""
    if request.do != "log" and request.key is None:
        return f"key is missing; do {request.do!r} needs it"
    for name in ("token", "expect", "after"):
        number = getattr(request, name)
        if number is not None and not 0 <= number <= INTEGER_MAX:
            return f"{name} is {number}; it must be from 0 to {INTEGER_MAX}"
    if not 1 <= request.limit <= LOG_PAGE:
        return f"limit is {request.limit}; it must be from 1 to {LOG_PAGE}"
    return ""


def _id_of(line: bytes) -> int:
    """The id of a line that is otherwise wrong, 0 if there is none."""
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return 0
    number = found.get("id", 0) if isinstance(found, dict) else 0
    return number if type(number) is int else 0
