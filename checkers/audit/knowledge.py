"""What is known about lock libraries, as data: units, defaults, what raises, what ``with`` does.

    library = LIBRARIES["redis-py"]
    library.lease_unit_ns, library.acquire_fails_by      # 1_000_000_000, "false"

One row per way to make a lock.  ``tests/audit/test_knowledge.py`` compares rows with the signatures
of the libraries where they are installed.

Traps: names of modules collide (``redlock``, ``redis_lock`` and ``etcd3`` are two packages each);
the row is chosen by the name that is called.  "false" means that a failed acquire *returns* and
the caller must look; a ``with`` block raises or not independently of that.
"""

from __future__ import annotations

from typing import Literal

import msgspec

S, MS = 1_000_000_000, 1_000_000


class Library(msgspec.Struct, frozen=True):
    """One way to make a lock.

    makers: dotted names whose call makes the lock.  method: the name of a method of a client that
    makes it, for clients of ``family``.  ``lease_at`` is the position of the lease among the
    arguments of a maker, ``method_lease_at`` among those of the method (-1: keyword only).
    """

    name: str
    family: Literal["redis", "etcd", "zookeeper", "postgres"]
    makers: tuple[str, ...] = ()
    method: str = ""
    lease: Literal["ttl", "session"] = "ttl"
    lease_args: tuple[str, ...] = ()
    lease_at: int = -1
    method_lease_at: int = -1
    lease_unit_ns: int = S
    lease_default_ns: int | None = None  # None: without the argument the lock never expires
    method_acquires: bool = False  # the call that makes the lock also takes it
    acquire_fails_by: Literal["false", "raise"] = "false"
    wait_args: tuple[str, ...] = ()  # with one of them acquire may come back without the lock
    waits_for_ever: bool = True  # acquire without arguments
    with_raises: bool = True  # a with-block that did not get the lock does not run
    renews_by: tuple[str, ...] = ()
    renew_fails_by: Literal["false", "raise", "none"] = "none"
    renewing_args: tuple[str, ...] = ()  # an argument that turns automatic renewal on
    releases_by: tuple[str, ...] = ("release",)
    release_guard: str = "the owner's token, compared and deleted in one step on the server"


_ROWS = (
    Library(
        name="redis-py",
        family="redis",
        makers=("redis.lock.Lock", "redis.asyncio.lock.Lock", "valkey.lock.Lock"),
        method="lock",
        lease_args=("timeout",),
        lease_at=2,
        method_lease_at=1,
        wait_args=("blocking", "blocking_timeout"),
        renews_by=("extend", "reacquire"),
        renew_fails_by="raise",
    ),
    Library(
        name="python-redis-lock",
        family="redis",
        makers=("redis_lock.Lock",),
        lease_args=("expire",),
        lease_at=2,
        wait_args=("blocking", "timeout"),
        renews_by=("extend",),
        renew_fails_by="raise",
        renewing_args=("auto_renewal",),
    ),
    Library(
        name="redlock-py",
        family="redis",
        makers=("redlock.Redlock",),
        method="lock",
        lease_args=("ttl",),
        method_lease_at=1,
        lease_unit_ns=MS,
        method_acquires=True,
        waits_for_ever=False,
        releases_by=("unlock",),
    ),
    Library(
        name="redlock",
        family="redis",
        makers=("redlock.RedLock",),
        lease_args=("ttl",),
        lease_at=4,
        lease_unit_ns=MS,
        lease_default_ns=100_000 * MS,
        waits_for_ever=False,
    ),
    Library(
        name="pottery",
        family="redis",
        makers=("pottery.Redlock", "pottery.AIORedlock"),
        lease_args=("auto_release_time",),
        lease_default_ns=10 * S,
        wait_args=("blocking", "timeout"),
        renews_by=("extend",),
        renew_fails_by="raise",
    ),
    Library(
        name="sherlock",
        family="redis",
        makers=("sherlock.RedisLock", "sherlock.Lock"),
        lease_args=("expire",),
        lease_default_ns=60 * S,
        acquire_fails_by="raise",
        renews_by=("renew",),
        renew_fails_by="false",
    ),
    Library(
        name="etcd3",
        family="etcd",
        makers=("etcd3.locks.Lock", "etcd3.Lock", "pyetcd.locks.Lock", "aetcd.locks.Lock"),
        method="lock",
        lease_args=("ttl",),
        lease_at=1,
        method_lease_at=1,
        lease_default_ns=60 * S,
        wait_args=("timeout",),
        waits_for_ever=False,  # ten seconds, then False
        with_raises=False,
        renews_by=("refresh",),
        renew_fails_by="false",
        release_guard="a transaction that compares the value of the key with the owner's",
    ),
    Library(
        name="kazoo",
        family="zookeeper",
        makers=("kazoo.recipe.lock.Lock", "kazoo.recipe.lock.WriteLock"),
        method="Lock",
        lease="session",
        wait_args=("blocking",),
        release_guard="an ephemeral node of the owner's own session",
    ),
    Library(
        name="django-pglock",
        family="postgres",
        makers=("pglock.advisory",),
        lease="session",
        wait_args=("timeout",),
        with_raises=False,
        release_guard="the session that took it",
    ),
)
LIBRARIES = {row.name: row for row in _ROWS}
MAKERS = {maker: row for row in _ROWS for maker in row.makers}

# Which family a client belongs to, by the name that makes it; the longest prefix decides.
CLIENTS = {
    "redis.": "redis",
    "valkey.": "redis",
    "django_redis.": "redis",
    "django.core.cache.": "redis",
    "redlock.Redlock": "redlock",
    "etcd3.": "etcd",
    "pyetcd.": "etcd",
    "aetcd.": "etcd",
    "kazoo.": "zookeeper",
}
BY_METHOD = {
    ("redis", "lock"): LIBRARIES["redis-py"],
    ("redlock", "lock"): LIBRARIES["redlock-py"],
    ("etcd", "lock"): LIBRARIES["etcd3"],
    ("zookeeper", "Lock"): LIBRARIES["kazoo"],
}

# Fresh for every acquisition if called there; a name of a machine or process is not.
FRESH = (
    "uuid.uuid1", "uuid.uuid4", "secrets.", "os.urandom", "random.", "ulid.", "time.time_ns",
)  # fmt: skip
REUSABLE = (
    "socket.gethostname", "socket.getfqdn", "platform.node", "os.getpid", "os.uname",
    "threading.get_ident", "threading.get_native_id", "threading.current_thread",
    "uuid.getnode", "getpass.getuser",
)  # fmt: skip
POOLS = (
    "psycopg_pool.", "psycopg2.pool.", "asyncpg.create_pool", "sqlalchemy.create_engine",
    "sqlalchemy.ext.asyncio.create_async_engine",
)  # fmt: skip
