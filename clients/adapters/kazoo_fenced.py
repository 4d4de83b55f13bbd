"""kazoo's Lock with a fencing token, which ZooKeeper has for the asking.

    python -u clients/worker/main.py --adapter clients/adapters/kazoo_fenced.py \
        --adapter-arg source=czxid

``czxid``: the transaction that made the lock's node, read after the grant (one more request).
``sequence``: the number at the end of the node's name, which costs nothing.  Nodes are queued in
the order in which they were made and granted in the order of the queue, so both grow with every
grant of a key.

Traps.  A sequence number counts the children of the lock's folder: it starts again at 0 if somebody
removes that folder, while a czxid goes on; and it is compared within one key only.  Both start
again if the whole ensemble loses its data.
"""

from __future__ import annotations

from clients.adapters.kazoo_lock import Held, KazooLock, node_of
from clients.worker.adapter import Grant

SOURCES = ("czxid", "sequence")
SEQUENCE_DIGITS = 10


class KazooFenced(KazooLock):
    """The adapter whose grants carry tokens.  source: czxid | sequence."""

    library = "kazoo-fenced"
    fenced = True

    def __init__(self, source: str = "czxid") -> None:
        super().__init__()
        if source not in SOURCES:
            raise ValueError(f"source is {source!r}; it must be one of {', '.join(SOURCES)}")
        self._by_name = source == "sequence"
        if self._by_name:
            self.library = "kazoo-sequence"

    def _granted(self, held: Held) -> Grant:
        node = held.lock.node
        if self._by_name:
            token = int(node[-SEQUENCE_DIGITS:])
        else:
            token = int(node_of(self.client, held.lock).czxid)
        return Grant(owner=node, token=token, handle=held)


ADAPTER = KazooFenced
