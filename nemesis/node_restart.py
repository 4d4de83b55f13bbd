"""node-restart: the server is killed and started again on its own data, at once.

With an append-only file a lock that was granted is there again, its lease still ending at the
same wall-clock instant.  Proof: another process, another run id, and the mark is there.
"""

from __future__ import annotations

from typing import ClassVar

from nemesis.restart import Restart


class NodeRestart(Restart):
    """Restarts servers with their data."""

    kind = "node-restart"
    summary = "kills a server and starts it again at once, with its data"
    wipe: ClassVar[bool] = False
