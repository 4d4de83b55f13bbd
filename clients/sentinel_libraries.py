"""Lock libraries that find their Redis through Sentinel: what the harness knows of each."""

from __future__ import annotations

from clients.libraries import ROOM, Library


def _sentinel(name: str, file: str, *, fencing: str = "", says: str) -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / "redis-py.txt",
        imports=("redis",),
        backends=("redis-sentinel",),
        powers=("renew", "believes", "fenced") if fencing else ("renew", "believes"),
        fencing=fencing,
        says=says,
    )


REDIS_PY_SENTINEL = _sentinel(
    "redis-py-sentinel",
    "redis_sentinel.py",
    says="redis.sentinel.Sentinel(...).master_for(...).lock(), on demand only when replicated",
)
REDIS_PY_SENTINEL_FENCED = _sentinel(
    "redis-py-sentinel-fenced",
    "redis_sentinel_fenced.py",
    fencing="INCR of a counter per lock, in the script that grants; a fail-over may repeat it",
    says="the same with a fencing token that is replicated as late as the lock",
)
REDIS_PY_SENTINEL_EPOCH = _sentinel(
    "redis-py-sentinel-epoch",
    "redis_sentinel_epoch.py",
    fencing="the sentinels' config epoch, then INCR of a counter per lock",
    says="the same with a fencing token that grows over fail-overs",
)
