"""Tables of this room: runtimes and backends, as strings that are imported when used.

Example: ``RUNTIMES.load("docker")()`` is a Runtime and ``BACKENDS.load("redis-single")`` a
BackendSpec.
"""

from __future__ import annotations

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
        "redis-single": "compose.backends.redis_single:REDIS_SINGLE",
        "redlock5": "compose.backends.redlock5:REDLOCK5",
        "valkey-single": "compose.backends.valkey_single:VALKEY_SINGLE",
    },
)
