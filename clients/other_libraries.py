"""Lock libraries in other languages: what the harness knows of each.

    LIBRARIES.load("go-redsync").language     # "go"

Their workers are programs of their own, built from clients/go and clients/java when they are asked
for (clients/toolchains.py).
"""

from __future__ import annotations

from clients.libraries import ROOM, Library

_GO = ROOM / "go"

GO_ETCD = Library(
    name="go-etcd-concurrency",
    language="go",
    adapter=_GO / "cmd" / "etcd-concurrency" / "main.go",
    requirements=_GO / "go.sum",
    imports=(),
    backends=("etcd3",),
    powers=("believes", "fenced", "signals-loss"),
    fencing="the revision that created the lock's key",
    loss_signal="callback",
    says="clientv3/concurrency, the lock of etcd's own Go client, with a session that keeps itself "
    "alive",
)
JAVA_REDISSON = Library(
    name="java-redisson",
    language="java",
    adapter=ROOM / "java" / "src" / "RedissonWorker.java",
    requirements=ROOM / "java" / "jars.sha256",
    imports=(),
    backends=("redis-single", "valkey-single"),
    powers=("believes",),
    says="Redisson's RLock, with its watchdog or a fixed lease",
)
GO_REDSYNC = Library(
    name="go-redsync",
    language="go",
    adapter=_GO / "cmd" / "redsync" / "main.go",
    requirements=_GO / "go.sum",
    imports=(),
    backends=("redlock5", "redis-single", "valkey-single"),
    powers=("renew", "believes"),
    says="redsync v4 over go-redis, all servers at once",
)
