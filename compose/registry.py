"""Tables of this room: runtimes, backends and families, as strings that are imported when used.

Example: ``RUNTIMES.load("docker")()`` is a Runtime and ``BACKENDS.load("redis-single")`` a
BackendSpec.
"""

from __future__ import annotations

from compose.backends.spec import BackendSpec, NodeSpec
from compose.families.base import Family
from harness.core.registry import Registry

# "sim" lives in another room; a string is no import, and harness may load it through this table.
RUNTIMES = Registry(
    "runtime",
    {
        "docker": "compose.docker_runtime:DockerRuntime",
        "process": "compose.process_runtime:ProcessRuntime",
        "sim": "clients.sim.runtime:SimRuntime",
    },
    extras={"docker": "pip install 'lockhavoc[docker]'"},
)

BACKENDS = Registry(
    "backend",
    {
        "etcd3": "compose.backends.etcd3:ETCD3",
        "postgres-ha": "compose.backends.postgres_ha:POSTGRES_HA",
        "postgres-pgbouncer": "compose.backends.postgres_pgbouncer:POSTGRES_PGBOUNCER",
        "postgres1": "compose.backends.postgres1:POSTGRES1",
        "redis-single": "compose.backends.redis_single:REDIS_SINGLE",
        "redis-sentinel": "compose.backends.redis_sentinel:REDIS_SENTINEL",
        "redlock5": "compose.backends.redlock5:REDLOCK5",
        "valkey-single": "compose.backends.valkey_single:VALKEY_SINGLE",
        "zookeeper3": "compose.backends.zookeeper3:ZOOKEEPER3",
    },
)

# What servers speak: name -> ``families.base.Family``.
FAMILIES = Registry(
    "family",
    {
        "etcd": "compose.families.etcd:EtcdFamily",
        "pgbouncer": "compose.families.pgbouncer:PgbouncerFamily",
        "postgres": "compose.families.postgres:PostgresFamily",
        "redis": "compose.families.redis:RedisFamily",
        "redis-replicated": "compose.families.redis:ReplicatedRedisFamily",
        "sentinel": "compose.families.sentinel:SentinelFamily",
        "valkey": "compose.families.redis:RedisFamily",
        "zookeeper": "compose.families.zookeeper:ZookeeperFamily",
    },
)


def family_for(spec: BackendSpec, node: NodeSpec) -> Family:
    """What this node speaks."""
    family: Family = FAMILIES.load(node.family or spec.family)()
    return family
