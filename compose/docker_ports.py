"""Free ports of 127.0.0.1, chosen up front, so that a restarted container keeps its ports.

    base = free_range(9)      # 9 ports in a row: base … base + 8

Why not the Engine's ephemeral ports: they change when a container is killed and started again,
and a worker's link would then point nowhere.  Trap: between looking and using, another process
may take a port; the caller must try again with another range (``up`` does, a few times).
"""

from __future__ import annotations

import errno
import random
import socket

from harness.core.errors import HarnessError

# Below Linux's range for outgoing connections (32768 and up), so that no client takes one by
# chance; above the ports of well-known services.
PORT_MIN, PORT_MAX = 20_000, 32_000
TRIES_MAX = 200


def is_free(port: int) -> bool:
    """True if 127.0.0.1:port can be bound now."""
    with socket.socket() as probe:
        # As the Engine's own proxy does, ignore connections that only linger in TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def free_range(count: int, *, chance: random.Random | None = None) -> int:
    """First of ``count`` free ports in a row; HarnessError if none is found.

    The place is random, not drawn from the plan: it says nothing about the run, and two runs with
    one seed must not meet on one port.
    """
    chance = chance or random.SystemRandom()
    for _ in range(TRIES_MAX):
        base = chance.randrange(PORT_MIN, PORT_MAX - count)
        if all(is_free(port) for port in range(base, base + count)):
            return base
    raise HarnessError(
        f"no {count} free ports in a row between {PORT_MIN} and {PORT_MAX} on 127.0.0.1:"
        " something holds them; see `ss -ltn`"
    )
