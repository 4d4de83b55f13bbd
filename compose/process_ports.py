"""Free ports on loopback that stay free while their server is down.

    ports = FreePorts(); ports.take()      # 23117

Trap: not port 0.  The system takes ephemeral ports for outgoing connections as well, so while a
killed server is down somebody else may get its port.  Worse: a client that keeps dialling a dead
local port in that range sooner or later gets the very port as its *own* end and is connected to
itself.  So ports are drawn from below the ephemeral range.
"""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

from harness.core.errors import HarnessError

_LOWEST = 10_000  # below are many well-known services
_HIGHEST = 65_535
_WIDTH_MIN = 2_000  # fewer would make parallel runs collide all the time
_TRIES_MAX = 200
_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def port_range(ephemeral: str) -> tuple[int, int]:
    """Where to draw from (both inclusive), given the text of ip_local_port_range."""
    low, high = (int(word) for word in ephemeral.split())
    if low - _LOWEST >= _WIDTH_MIN:
        return _LOWEST, low - 1
    if _HIGHEST - high >= _WIDTH_MIN:
        return high + 1, _HIGHEST
    # Somebody made nearly every port ephemeral.  Then there is no safe place; a port that was
    # taken meanwhile ends in a clear error when its server is started again.
    return _LOWEST, _HIGHEST


class FreePorts:
    """Draws ports; each is given out once and was free a moment ago."""

    def __init__(self) -> None:
        try:
            self._low, self._high = port_range(_RANGE_FILE.read_text())
        except OSError as error:
            raise HarnessError(f"cannot read {_RANGE_FILE}: {error}") from error
        # Not from the run's seed: two runs with one seed at the same time must not collide.
        self._rng = random.SystemRandom()
        self._given: set[int] = set()

    def take(self) -> int:
        """A free port of 127.0.0.1; HarnessError if none is found."""
        for _ in range(_TRIES_MAX):
            port = self._rng.randint(self._low, self._high)
            if port not in self._given and _is_free(port):
                self._given.add(port)
                return port
        raise HarnessError(
            f"no free port on 127.0.0.1 between {self._low} and {self._high} "
            f"in {_TRIES_MAX} tries; see what listens with: ss -ltn"
        )


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        # As servers do: a port in TIME_WAIT is usable.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def listens(pid: int, port: int) -> bool:
    """True if this process has a socket that listens on 127.0.0.1:``port`` (proc(5))."""
    local = f"0100007F:{port:04X}"
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == local and fields[3] == "0A":  # LISTEN
            inodes.add(f"socket:[{fields[9]}]")
    try:
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it has just ended
        return False
    for link in opened:
        try:
            if os.readlink(link) in inodes:
                return True
        except OSError:  # closed since it was listed
            continue
    return False
