"""Lock libraries in other languages: what the harness knows of each.

    LIBRARIES.load("go-redsync").language     # "go"

Their workers are programs of their own, built from clients/go and clients/java when they are asked
for (clients/toolchains.py).
"""

from __future__ import annotations

from clients.libraries import ROOM, Library

_GO, _JAVA = ROOM / "go", ROOM / "java"

GO_ETCD = Library(
    name="go-etcd-concurrency",
    language="go",
    adapter=_GO / "cmd" / "etcd-concurrency" / "main.go",
    requirements=_GO / "go.sum",
    imports=(),
    backends=("etcd3",),
    lease="session",
    powers=("believes", "fenced", "signals-loss"),
    fencing="the revision that created the lock's key",
    loss_signal="callback",
    extra={"main": "go.etcd.io/etcd/client/v3", "renews": "by itself"},
    says="clientv3/concurrency, the lock of etcd's own Go client, with a session that keeps itself "
    "alive",
)
GO_REDSYNC = Library(
    name="go-redsync",
    language="go",
    adapter=_GO / "cmd" / "redsync" / "main.go",
    requirements=_GO / "go.sum",
    imports=(),
    backends=("redlock5", "redis-single", "valkey-single"),
    powers=("renew", "believes"),
    extra={"main": "github.com/go-redsync/redsync/v4"},
    says="redsync v4 over go-redis, all servers at once",
)
JAVA_REDISSON = Library(
    name="java-redisson",
    language="java",
    adapter=_JAVA / "redisson" / "RedissonWorker.java",
    requirements=_JAVA / "redisson" / "jars.sha256",
    imports=(),
    backends=("redis-single", "valkey-single"),
    powers=("believes",),
    extra={"main": "org.redisson:redisson", "renews": "by itself"},
    says="Redisson's RLock, with its watchdog or a fixed lease",
)


def _curator(name: str, says: str, **args: str) -> Library:
    return Library(
        name=name,
        language="java",
        adapter=_JAVA / "curator" / "CuratorWorker.java",
        requirements=_JAVA / "curator" / "jars.sha256",
        imports=(),
        backends=("zookeeper3",),
        args=args,
        lease="session",
        powers=("believes", "signals-loss"),
        loss_signal="callback",
        extra={"main": "org.apache.curator:curator-recipes"},
        says=says,
    )


JAVA_CURATOR = _curator(
    "java-curator", "Curator's InterProcessMutex, with a ConnectionStateListener for losses"
)
JAVA_CURATOR_LOCKER = _curator(
    "java-curator-locker", "the same by its block form, try (Locker ...)", form="block"
)
