"""The worker's line to the harness: requests in, replies out, and the end of it noticed.

Why so careful: the library under test shares the process.  It may print to stdout, read stdin,
block for ever inside a C extension, or catch every exception.  None of that may corrupt the
protocol or keep the process alive after the harness is gone.

Traps: the real stdin and stdout are moved to private descriptors before the adapter is loaded;
descriptor 1 then leads to the log (stderr) and descriptor 0 to /dev/null.  ``send`` may be called
from any thread (loss signals), so it takes a lock and writes whole lines.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_BYTES_MAX = 1 << 20  # the same bound as in harness.core.limits, which cannot be imported here
GRACE_S = 1.5  # for closing the library's client; the harness waits 3 s before it kills
READ_BYTES = 1 << 14  # requests are a few hundred bytes

encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode  # ASCII: one line always


class Stop(SystemExit):
    """SIGTERM arrived.  A SystemExit, since ``except Exception`` does not eat that and asyncio
    passes it on from any task."""


class Channel:
    """JSON lines over two descriptors that nobody else in this process knows."""

    def __init__(self, requests_fd: int, replies_fd: int) -> None:
        self.requests_fd = requests_fd
        self.replies_fd = replies_fd
        self.buffer = LineBuffer()
        self.unread: list[bytes] = []  # whole lines that arrived and nobody took yet
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """Writes one message; a harness that is gone raises BrokenPipeError."""
        data = (encode(message) + "\n").encode("ascii")
        with self._lock:
            sent = os.write(self.replies_fd, data)
            while sent < len(data):
                sent += os.write(self.replies_fd, data[sent:])

    def log(self, text: str) -> None:
        """An event for people: it ends in the worker's log and decides nothing."""
        self.send({"event": "log", "error": text})

    def lines(self) -> Iterator[bytes]:
        """Lines as they arrive, without the newline; ends at EOF.  A torn last line is dropped."""
        while self.peek() is not None:
            yield self.unread.pop(0)

    def peek(self) -> bytes | None:
        """The next line, which stays to be taken; None at EOF."""
        while not self.unread:
            data = os.read(self.requests_fd, READ_BYTES)
            if not data:
                return None
            self.unread += self.buffer.split(data)
        return self.unread[0]


class LineBuffer:
    """Cuts a stream of bytes into lines; ValueError if one grows beyond ``LINE_BYTES_MAX``."""

    def __init__(self) -> None:
        self._pending = b""

    def split(self, data: bytes) -> list[bytes]:
        """Whole lines so far; the rest is kept."""
        *whole, self._pending = (self._pending + data).split(b"\n")
        if len(self._pending) > LINE_BYTES_MAX:
            raise ValueError(f"a request is longer than {LINE_BYTES_MAX} bytes")
        return whole


def take_stdio() -> Channel:
    """Moves stdin and stdout out of the library's reach and returns the channel over them."""
    requests_fd, replies_fd = os.dup(0), os.dup(1)
    null_fd = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_fd, 0)
    os.close(null_fd)
    os.dup2(2, 1)
    return Channel(requests_fd, replies_fd)


def guard(requests_fd: int) -> None:
    """Makes sure that this process ends soon after EOF on stdin or SIGTERM, whatever it does.

    Both are also noticed by the main thread, which then closes the client and exits by itself.
    This is for a main thread that is stuck in the library: a thread waits in poll(2) for the
    hang-up of the pipe or a byte from the C-level signal handler, and exits after ``GRACE_S``.
    It sleeps in the kernel till then and costs the operations nothing.
    """
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    os.set_blocking(read_fd, False)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _stop)
    # A Ctrl-C in the terminal goes to the whole group; the harness alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(
        target=_watch, args=(requests_fd, read_fd), name="lockhavoc-guard", daemon=True
    ).start()


def _stop(signum: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stop


def _watch(requests_fd: int, signals_fd: int) -> None:
    poller = select.poll()
    poller.register(requests_fd, getattr(select, "POLLRDHUP", 0))  # hang-ups come unasked
    poller.register(signals_fd, select.POLLIN)
    while True:
        for fd, _ in poller.poll():
            if fd == requests_fd or signal.SIGTERM in os.read(signals_fd, 512):
                _exit_after_grace()


def _exit_after_grace() -> None:
    time.sleep(GRACE_S)
    os._exit(0)
