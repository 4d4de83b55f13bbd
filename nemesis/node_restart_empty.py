"""node-restart-empty: the server is killed and started again with nothing, at once.

What a cache without persistence does after a crash: every lock is forgotten while its holder
still believes in it.  Proof: another process, another run id, and the mark is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nemesis.restart import Restart


class NodeRestartEmpty(Restart):
    """Restarts servers without their data."""

    kind = "node-restart-empty"
    summary = "kills a server, removes its data and starts it again at once"
    wipe: ClassVar[bool] = True
    refused: ClassVar[Mapping[str, str]] = {
        "etcd": "a member that lost its data does not start before an operator has removed it from "
        "the cluster and added it again",
    }
