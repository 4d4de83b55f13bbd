"""Echo and facts of a Redis or Valkey server, over a bare socket.

    probe("127.0.0.1", 6379, timeout_ms=250)   # Probe(outcome="answered", rtt_ns=41000)
    facts("127.0.0.1", 6379)                    # {"run_id": ..., "keys": 3, "echoes": 1, ...}

Why not the ``redis`` package: it says HELLO and CLIENT SETINFO when it connects and tries again
when it fails.  A probe must send exactly one command (the reply-cut fault is proved by counting
them), and must tell *silent* from *closed* from *refused*, which a retry would blur.

Traps: the probe sends ECHO with a fresh nonce, not PING, because workers do not use ECHO: the
server's own count of ECHO calls then tells whether a request arrived.  Answers are compared with
the nonce, so a late answer to another probe cannot count.  A connection that is accepted proves
nothing: a stopped server's kernel and every proxy accept too.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from harness.core import limits
from harness.core.clock import NS_PER_S, MonotonicClock, ms
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import ClockReading, Probe

_CLOCK = MonotonicClock()  # a socket's deadline is real time, also where the run's clock is not
_MARK_LIFE_S = 86_400  # longer than any run; then the server forgets it by itself
_BULK_BYTES_MAX = 1 << 20  # INFO is about 8 kB; more means that this is no Redis


class _Closed(Exception):
    """The other side closed the connection."""


class _Connection:
    """A socket with one deadline over all that is done with it."""

    def __init__(self, host: str, port: int, timeout_ms: int) -> None:
        self._deadline_ns = _CLOCK.now() + ms(timeout_ms)
        self._socket = socket.create_connection((host, port), timeout=timeout_ms / 1000)
        self._buffer = b""

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def send(self, *words: str) -> None:
        parts = [f"*{len(words)}\r\n".encode()]
        for word in words:
            data = word.encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        self._set_timeout()
        self._socket.sendall(b"".join(parts))

    def reply(self) -> str:
        """One reply, an array as lines; AnsweredError for an error reply."""
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise AnsweredError(f"server answered with an error: {rest.decode(errors='replace')}")
        if kind == b"*":
            return "\n".join([self.reply() for _ in range(int(rest))])
        if kind != b"$":
            return rest.decode(errors="replace")
        size = int(rest)
        if size > _BULK_BYTES_MAX:
            raise HarnessError(f"server sent a reply of {size} bytes; this is no Redis")
        if size < 0:
            return ""
        while len(self._buffer) < size + 2:
            self._receive()
        data, self._buffer = self._buffer[:size], self._buffer[size + 2 :]
        return data.decode(errors="replace")

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            self._receive()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def _receive(self) -> None:
        self._set_timeout()
        data = self._socket.recv(65536)
        if not data:
            raise _Closed
        self._buffer += data

    def _set_timeout(self) -> None:
        left_ns = self._deadline_ns - _CLOCK.now()
        if left_ns <= 0:
            raise TimeoutError
        self._socket.settimeout(left_ns / NS_PER_S)


def probe(host: str, port: int, timeout_ms: int = limits.PROBE_TIMEOUT_MS) -> Probe:
    """Sends one ECHO on a fresh connection and waits for its answer.

    rtt_ns counts from sending to the answer, without the connect.  An error answer (LOADING,
    NOAUTH) is an answer: the way to the server is open.
    """
    nonce = f"lockhavoc:{os.urandom(8).hex()}"
    try:
        connection = _Connection(host, port, timeout_ms)
    except TimeoutError:
        return Probe("silent")
    except OSError:
        return Probe("refused")
    with connection:
        try:
            sent_ns = _CLOCK.now()
            connection.send("ECHO", nonce)
            answer = connection.reply()
        except HarnessError:
            return Probe("answered", _CLOCK.now() - sent_ns)
        except TimeoutError:
            return Probe("silent")
        except (_Closed, OSError):
            return Probe("closed")
        if answer != nonce:
            return Probe("closed")
        return Probe("answered", _CLOCK.now() - sent_ns)


def ask(
    host: str, port: int, *commands: Sequence[str], timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
) -> list[str]:
    """Sends commands on one connection and returns their replies as text.

    Raises HarnessError if the server does not answer within ``timeout_ms``, AnsweredError (one of
    them) if it answers an error.
    """
    try:
        with _Connection(host, port, timeout_ms) as connection:
            replies = []
            for words in commands:
                connection.send(*words)
                replies.append(connection.reply())
            return replies
    except TimeoutError as error:
        raise HarnessError(
            f"server at {host}:{port} gave no answer to {commands[0][0]} in {timeout_ms} ms"
        ) from error
    except (_Closed, OSError) as error:
        raise HarnessError(
            f"server at {host}:{port} did not answer {commands[0][0]}: "
            f"{error or 'it closed the connection'}"
        ) from error


def facts(host: str, port: int, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS) -> dict[str, Any]:
    """``run_id``, ``uptime_s``, ``keys`` (all databases), ``commands``, ``echoes``,
    ``persistent``, ``role`` (primary | replica), ``version``, ``server`` (redis | valkey), ``pid``;
    ``replicas`` (those that are online), ``in_sync`` (a replica whose way to its primary is up)
    and ``lsn`` (bytes of the stream of writes that it has).

    Raises HarnessError if the server does not answer.
    """
    (text,) = ask(host, port, ("INFO", "everything"), timeout_ms=timeout_ms)
    info = fields(text)
    try:
        return {
            "run_id": info["run_id"],
            "uptime_s": int(info["uptime_in_seconds"]),
            "keys": sum(_field(info[name], "keys") for name in info if _is_database(name)),
            "commands": int(info["total_commands_processed"]),
            "echoes": _field(info.get("cmdstat_echo", "calls=0"), "calls"),
            "persistent": info["aof_enabled"] == "1",
            "role": "primary" if info["role"] == "master" else "replica",
            "server": "valkey" if "valkey_version" in info else "redis",
            "version": info.get("valkey_version") or info["redis_version"],
            "pid": int(info["process_id"]),
            "replicas": sum("state=online" in info[name] for name in info if _is_replica(name)),
            "in_sync": info.get("master_link_status") == "up",
            "lsn": int(info["master_repl_offset"]),
        }
    except (KeyError, ValueError) as error:
        raise HarnessError(
            f"server at {host}:{port}: INFO lacks or garbles the field {error}"
        ) from error


def fields(info: str) -> dict[str, str]:
    """Names and values of an INFO reply, without its headings."""
    return dict(line.split(":", 1) for line in info.splitlines() if ":" in line and line[0] != "#")


def clock(host: str, port: int) -> ClockReading:
    """How far the server's wall clock (TIME) is ahead of ours.  HarnessError as for ``ask``."""
    before_ns = time.time_ns()
    (reply,) = ask(host, port, ("TIME",))
    after_ns = time.time_ns()
    seconds, _, micros = reply.partition("\n")
    there_ns = int(seconds) * NS_PER_S + int(micros) * 1000
    return ClockReading(there_ns - (before_ns + after_ns) // 2, (after_ns - before_ns) // 2 + 1000)


def sessions(host: str, port: int, name: str) -> list[str]:
    """Ids of the clients that gave their connection this name.  HarnessError as for ``ask``."""
    (text,) = ask(host, port, ("CLIENT", "LIST"))
    clients = [dict(w.partition("=")[::2] for w in line.split()) for line in text.splitlines()]
    return [client["id"] for client in clients if client.get("name") == name]


def end_session(host: str, port: int, identity: str) -> None:
    """Closes one client's connection, if it is there.  HarnessError as for ``ask``."""
    ask(host, port, ("CLIENT", "KILL", "ID", identity))


def leave_mark(host: str, port: int, mark: str) -> None:
    """Stores a key named ``mark``; see ``protocols.Markable``.  HarnessError as for ``ask``."""
    ask(host, port, ("SET", mark, "1", "EX", str(_MARK_LIFE_S)))


def has_mark(host: str, port: int, mark: str) -> bool:
    """True if that key is there.  HarnessError as for ``ask``."""
    return ask(host, port, ("EXISTS", mark)) == ["1"]


def _is_database(name: str) -> bool:
    return name.startswith("db") and name[2:].isdigit()


def _is_replica(name: str) -> bool:
    return name.startswith("slave") and name[5:].isdigit()


def _field(record: str, name: str) -> int:
    """A number out of "calls=3,usec=1"; KeyError if it is not there."""
    return int(dict(part.split("=", 1) for part in record.split(","))[name])
