"""Lock libraries on Redis besides redis-py and the Redlocks: what the harness knows of each.

    LIBRARIES.load("sherlock").extra        # {"ttl_ms_min": "1000"}

``extra``: ``ttl_ms_min`` is the shortest lease that the library can make, if that is more than a
few ms; ``renews`` says that it renews a lock by itself for as long as its process lives;
``refuses`` is what an acquire says that was not granted in time, if that is no "busy".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from clients.libraries import ROOM, Library

SINGLE = ("redis-single", "valkey-single")
WHOLE = {"ttl_ms_min": "1000"}
BY_ITSELF = {"renews": "by itself"}
_COUNTER = "INCR of a counter per lock, in the script that grants"


def _redis(
    name: str,
    file: str,
    *,
    imports: str,
    says: str,
    package: str = "",
    powers: tuple[str, ...] = (),
    fencing: str = "",
    lease: Literal["ttl", "connection"] = "ttl",
    backends: tuple[str, ...] = SINGLE,
    args: Mapping[str, str] | None = None,
    loss_signal: Literal["none", "flag", "callback"] = "none",
    extra: Mapping[str, str] | None = None,
) -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / f"{package or name}.txt",
        imports=(imports,),
        backends=backends,
        args=args or {},
        lease=lease,
        powers=powers,
        fencing=fencing,
        loss_signal=loss_signal,
        says=says,
        extra=extra or {},
    )


REDIS_PY_WITH = _redis(
    "redis-py-with",
    "redis_py_with.py",
    imports="redis",
    package="redis-py",
    powers=("renew", "believes"),
    says="redis.Redis().lock() as a with statement: who is inside of the block is a holder",
)
VALKEY_PY = _redis(
    "valkey-py",
    "valkey_py.py",
    imports="valkey",
    powers=("renew", "believes"),
    says="valkey.Valkey().lock(), the fork of redis-py's",
)
PYTHON_REDIS_LOCK = _redis(
    "python-redis-lock",
    "python_redis_lock.py",
    imports="redis_lock",
    powers=("renew", "believes"),
    says="redis_lock.Lock(), whose waiters are woken by a list",
    extra=WHOLE,
)
PYTHON_REDIS_LOCK_RENEWING = _redis(
    "python-redis-lock-renewing",
    "python_redis_lock.py",
    imports="redis_lock",
    package="python-redis-lock",
    args={"renewing": "yes"},
    powers=("renew", "believes"),
    says="the same with auto_renewal, a thread that extends the lease",
    extra={**WHOLE, **BY_ITSELF},
)
SHERLOCK = _redis(
    "sherlock",
    "sherlock_lock.py",
    imports="sherlock",
    powers=("renew",),
    says="sherlock.RedisLock(), whole seconds",
    extra=WHOLE,
)
FENCEKIT = _redis(
    "fencekit",
    "fencekit_lock.py",
    imports="fencekit",
    powers=("renew", "fenced"),
    fencing=_COUNTER,
    says="fencekit.DistributedLock(), each grant with a token",
)
COREDIS = _redis(
    "coredis",
    "coredis_lock.py",
    imports="coredis",
    says="coredis.patterns.lock.Lock(), for asyncio",
)
REDIS_FIFO_LOCK = _redis(
    "redis-fifo-lock",
    "redis_fifo_lock.py",
    imports="redis_fifo_lock",
    powers=("fenced", "signals-loss"),
    fencing=_COUNTER,
    loss_signal="callback",
    says="redis_fifo_lock.FifoLock(), a queue that renews and tells of a loss, for asyncio",
    extra={**BY_ITSELF, "refuses": "not first in the queue when the time was over"},
)
PY_REDIS_SEMAPHORE = _redis(
    "py-redis-semaphore",
    "py_redis_semaphore.py",
    imports="redis_semaphore",
    powers=("renew", "fenced", "signals-loss", "permits"),
    fencing=_COUNTER,
    loss_signal="callback",
    says="redis_semaphore.Mutex() and Semaphore(), a set of owners with a heartbeat and a callback",
    extra=BY_ITSELF,
)
PORTALOCKER = _redis(
    "portalocker",
    "portalocker_redis.py",
    imports="portalocker.redis",
    powers=("believes", "fenced", "signals-loss"),
    fencing="INCR of a counter per channel, after the grant",
    lease="connection",
    loss_signal="callback",
    says="portalocker.RedisLock(), held by a subscription; others ask whether it still answers",
)
TOOZ_REDIS = _redis(
    "tooz-redis",
    "tooz_redis.py",
    imports="tooz.drivers.redis",
    package="tooz",
    powers=("believes",),
    says="tooz.coordination.get_coordinator('redis://...').get_lock(), renewed by its heart",
    extra={**WHOLE, **BY_ITSELF},
)
AIOREDLOCK = _redis(
    "aioredlock",
    "aioredlock_lock.py",
    imports="aioredlock",
    backends=("redlock5", *SINGLE),
    powers=("renew",),
    says="aioredlock.Aioredlock([...]).lock(), for asyncio; abandoned",
)
AIOREDLOCK_WATCHDOG = _redis(
    "aioredlock-watchdog",
    "aioredlock_lock.py",
    imports="aioredlock",
    package="aioredlock",
    backends=("redlock5", *SINGLE),
    args={"watchdog": "yes"},
    powers=("renew",),
    loss_signal="flag",
    says="the same without a length, so that its watchdog renews",
    extra=BY_ITSELF,
)
