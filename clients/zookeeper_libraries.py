"""Lock libraries for ZooKeeper: data only, as in ``libraries.py``."""

from __future__ import annotations

from collections.abc import Mapping

from clients.libraries import ROOM, Library


def _kazoo(
    name: str,
    file: str,
    *,
    says: str,
    fencing: str = "",
    args: Mapping[str, str] | None = None,
    power: str = "",
) -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / "kazoo.txt",
        imports=("kazoo",),
        backends=("zookeeper3",),
        args=args or {},
        lease="session",
        powers=(*(["fenced"] if fencing else []), "signals-loss", *([power] if power else [])),
        fencing=fencing,
        loss_signal="callback",
        says=says,
    )


KAZOO = _kazoo(
    "kazoo", "kazoo_lock.py", says="KazooClient.Lock(), an ephemeral node in a queue of waiters"
)
KAZOO_FENCED = _kazoo(
    "kazoo-fenced",
    "kazoo_fenced.py",
    args={"source": "czxid"},
    fencing="czxid of the lock's node, read after the grant",
    says="KazooClient.Lock() with the transaction that made its node as its token",
)
KAZOO_SEQUENCE = _kazoo(
    "kazoo-sequence",
    "kazoo_fenced.py",
    args={"source": "sequence"},
    fencing="sequence number in the name of the lock's node",
    says="KazooClient.Lock() with its place in the queue as its token",
)
KAZOO_RW = _kazoo(
    "kazoo-rw",
    "kazoo_shared.py",
    args={"recipe": "rw"},
    power="read",
    says="KazooClient.ReadLock() and WriteLock(), nodes in one queue",
)
KAZOO_SEMAPHORE = _kazoo(
    "kazoo-semaphore",
    "kazoo_shared.py",
    args={"recipe": "semaphore"},
    power="permits",
    says="KazooClient.Semaphore(), an ephemeral node for each permit and a lock to queue in",
)
TOOZ = Library(
    name="tooz-zookeeper",
    adapter=ROOM / "adapters" / "tooz_zookeeper.py",
    requirements=ROOM / "requirements" / "tooz.txt",
    imports=("tooz.drivers.zookeeper",),
    backends=("zookeeper3",),
    lease="session",
    powers=("believes",),
    says="tooz.coordination.get_coordinator('zookeeper://...').get_lock(), kazoo inside",
)
