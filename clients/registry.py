"""Lock libraries that can be put under test: name -> ``clients.libraries.Library``.

One line per library; nothing is imported until it is used.  Third parties add theirs by an entry
point in the group ``lockhavoc.libraries`` whose value is a ``Library`` object.
"""

from __future__ import annotations

from clients.broken.registry import CANARIES
from clients.recipes.registry import RECIPES
from harness.core.registry import Registry

LIBRARIES = Registry(
    "library",
    {
        # Right ones.
        "redis-py": "clients.libraries:REDIS_PY",
        "redis-py-asyncio": "clients.libraries:REDIS_PY_ASYNCIO",
        "redis-py-fenced": "clients.libraries:REDIS_PY_FENCED",
        "redis-py-sentinel": "clients.sentinel_libraries:REDIS_PY_SENTINEL",
        "redis-py-sentinel-epoch": "clients.sentinel_libraries:REDIS_PY_SENTINEL_EPOCH",
        "redis-py-sentinel-fenced": "clients.sentinel_libraries:REDIS_PY_SENTINEL_FENCED",
        "redis-py-with": "clients.redis_libraries:REDIS_PY_WITH",
        "valkey-py": "clients.redis_libraries:VALKEY_PY",
        "python-redis-lock": "clients.redis_libraries:PYTHON_REDIS_LOCK",
        "python-redis-lock-renewing": "clients.redis_libraries:PYTHON_REDIS_LOCK_RENEWING",
        "sherlock": "clients.redis_libraries:SHERLOCK",
        "fencekit": "clients.redis_libraries:FENCEKIT",
        "coredis": "clients.redis_libraries:COREDIS",
        "redis-fifo-lock": "clients.redis_libraries:REDIS_FIFO_LOCK",
        "py-redis-semaphore": "clients.redis_libraries:PY_REDIS_SEMAPHORE",
        "portalocker": "clients.redis_libraries:PORTALOCKER",
        "tooz-redis": "clients.redis_libraries:TOOZ_REDIS",
        "aioredlock": "clients.redis_libraries:AIOREDLOCK",
        "aioredlock-watchdog": "clients.redis_libraries:AIOREDLOCK_WATCHDOG",
        "redlock-py": "clients.libraries:REDLOCK_PY",
        "pottery": "clients.libraries:POTTERY",
        "psycopg": "clients.postgres_libraries:PSYCOPG",
        "psycopg-fenced": "clients.postgres_libraries:PSYCOPG_FENCED",
        "psycopg-xact": "clients.postgres_libraries:PSYCOPG_XACT",
        "asyncpg": "clients.postgres_libraries:ASYNCPG",
        "django-pglock": "clients.postgres_libraries:DJANGO_PGLOCK",
        "pals": "clients.postgres_libraries:PALS",
        "sqlalchemy-dlock": "clients.postgres_libraries:SQLALCHEMY_DLOCK",
        "postgres-mutex": "clients.postgres_libraries:POSTGRES_MUTEX",
        "etcd-sdk-python": "clients.etcd_libraries:ETCD_SDK",
        "aetcd": "clients.etcd_libraries:AETCD",
        "python-etcd3": "clients.etcd_libraries:PYTHON_ETCD3",
        "etcd3gw": "clients.etcd_libraries:ETCD3GW",
        "recipe-etcd": "clients.etcd_libraries:RECIPE",
        "kazoo": "clients.zookeeper_libraries:KAZOO",
        "kazoo-fenced": "clients.zookeeper_libraries:KAZOO_FENCED",
        "kazoo-sequence": "clients.zookeeper_libraries:KAZOO_SEQUENCE",
        "kazoo-rw": "clients.zookeeper_libraries:KAZOO_RW",
        "kazoo-semaphore": "clients.zookeeper_libraries:KAZOO_SEMAPHORE",
        "tooz-zookeeper": "clients.zookeeper_libraries:TOOZ",
        "go-etcd-concurrency": "clients.other_libraries:GO_ETCD",
        "go-redsync": "clients.other_libraries:GO_REDSYNC",
        "java-redisson": "clients.other_libraries:JAVA_REDISSON",
        "java-curator": "clients.other_libraries:JAVA_CURATOR",
        "java-curator-locker": "clients.other_libraries:JAVA_CURATOR_LOCKER",
        **RECIPES,
        "retry-loop": "clients.retry_library:RETRY_LOOP",
        # Deliberately broken ones (canaries).
        **CANARIES,
        "broken-etcd-unchecked-wait": "clients.etcd_libraries:UNCHECKED_WAIT",
    },
)
