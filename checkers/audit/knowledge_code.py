"""What is known about lock libraries of JavaScript, Go, Java and Ruby, as data.

    library = CODE_LIBRARIES["node-redlock"]
    library.acquires[0]          # acquire(resources, duration in ms), a refusal raises

A row needs an import of the library in the same file: ``lock`` and ``acquire`` are words that
everybody uses.  Units, defaults and answers were read in the sources of the versions named.

Traps: a Go answer has parts, and ``answers`` are those of which one must be looked at.  ``runs`` of
a block form says that the block is entered without the lock, too.
"""

from __future__ import annotations

from typing import Literal

import msgspec

NS, MS, S = 1, 1_000_000, 1_000_000_000


class Method(msgspec.Struct, frozen=True):
    """A call that takes, renews or frees.

    args: fewest and most arguments, which tells overloads apart.  lease_at, lease_words: where the
    lease is, in lease_unit_ns, or in the TimeUnit at argument unit_at.  fails: how a refusal shows.
    """

    name: str
    args: tuple[int, int] = (0, 9)
    lease_at: int = -1
    lease_words: tuple[str, ...] = ()
    lease_unit_ns: int = S
    unit_at: int = -1
    fails: Literal["raise", "false", "error", "never"] = "raise"
    answers: tuple[int, ...] = (0,)
    block: bool = False  # takes the work as a function, and frees on every way out
    runs: bool = False  # ... and runs it without the lock as well, which the block must look at
    renewing: bool | None = None  # None: as the library says
    guarded: bool = True
    needs_word: str = ""  # only with this keyword argument
    without_word: str = ""


class CodeLibrary(msgspec.Struct, frozen=True):
    """One library.  ``read`` is the version whose source was read for this row.

    makers: calls that make the lock or its client.  handle: "receiver" (the lock is what acquire is
    called on) or "answer" (acquire gives it back).  guess: receivers that are believed without
    their making being seen.  lease_options: calls or keywords among the arguments of a maker.
    """

    name: str
    language: str
    family: Literal["redis", "etcd", "zookeeper", "postgres", "sql"]
    imports: tuple[str, ...]
    makers: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    guess: str = ""
    handle: Literal["receiver", "answer"] = "receiver"
    lease: Literal["ttl", "session"] = "ttl"
    lease_default_ns: int | None = None
    lease_options: tuple[str, ...] = ()
    lease_unit_ns: int = S
    maker_lease_at: int = -1
    renewing: bool = False
    acquires: tuple[Method, ...] = ()
    renews: tuple[Method, ...] = ()
    releases: tuple[Method, ...] = ()
    release_guard: str = "the owner's token, compared and deleted in one step on the server"
    read: str = ""


_JS_EXTEND = (Method("extend", (1, 1), 0, (), MS), Method("extend", (2, 3), 1, (), MS))
_SESSION = "an ephemeral node of the owner's own session"

_ROWS = (
    CodeLibrary(
        name="node-redlock",
        language="javascript",
        family="redis",
        imports=("redlock",),
        makers=("Redlock",),
        types=("Redlock", "Lock"),
        guess=r"redlock|(^|\.)_?lock$",
        handle="answer",
        acquires=(
            Method("acquire", (2, 3), 1, (), MS),
            Method("lock", (2, 3), 1, (), MS),  # version 4
            Method("using", (3, 4), 1, (), MS, block=True, renewing=True),
        ),
        renews=_JS_EXTEND,
        releases=(Method("release", (0, 2)), Method("unlock", (0, 2))),
        read="5.0.0-beta.2",
    ),
    CodeLibrary(
        name="redis-semaphore",
        language="javascript",
        family="redis",
        imports=("redis-semaphore",),
        makers=("Mutex", "RedlockMutex", "Semaphore", "MultiSemaphore"),
        types=("Mutex", "RedlockMutex"),
        lease_default_ns=10 * S,
        lease_options=("lockTimeout",),
        lease_unit_ns=MS,
        renewing=True,  # unless refreshInterval is 0
        acquires=(Method("acquire", (0, 0)), Method("tryAcquire", (0, 0), fails="false")),
        releases=(Method("release", (0, 0)),),
    ),
    CodeLibrary(
        name="redsync",
        language="go",
        family="redis",
        imports=("github.com/go-redsync/redsync", "gopkg.in/redsync"),
        makers=("NewMutex",),
        types=("redsync.Mutex",),
        lease_default_ns=8 * S,
        lease_options=("WithExpiry", "SetExpiry"),
        lease_unit_ns=NS,
        acquires=tuple(
            Method(name, fails="error")
            for name in ("Lock", "LockContext", "TryLock", "TryLockContext")
        ),
        renews=tuple(
            Method(name, fails="false", answers=(0, 1)) for name in ("Extend", "ExtendContext")
        ),
        releases=(Method("Unlock"), Method("UnlockContext")),
        read="4.17.0",
    ),
    CodeLibrary(
        name="bsm/redislock",
        language="go",
        family="redis",
        imports=("github.com/bsm/redislock",),
        makers=("New",),
        types=("redislock.Client", "redislock.Lock"),
        handle="answer",
        acquires=(
            Method("Obtain", (4, 4), 2, (), NS, fails="error", answers=(1,)),
            Method("Obtain", (5, 5), 3, (), NS, fails="error", answers=(1,)),
            Method("ObtainMulti", (4, 4), 2, (), NS, fails="error", answers=(1,)),
        ),
        renews=(Method("Refresh", (3, 3), 1, (), NS, fails="false"),),
        releases=(Method("Release", (1, 1)),),
        read="0.10.0",
    ),
    CodeLibrary(
        name="etcd concurrency",
        language="go",
        family="etcd",
        imports=("go.etcd.io/etcd/client/v3/concurrency", "go.etcd.io/etcd/clientv3/concurrency"),
        makers=("NewMutex",),
        types=("concurrency.Mutex",),
        lease="session",
        acquires=(Method("Lock", (1, 1), fails="error"), Method("TryLock", (1, 1), fails="error")),
        releases=(Method("Unlock", (1, 1)),),
        release_guard="a key under the lease of the owner's own session",
    ),
    CodeLibrary(
        name="go-zookeeper",
        language="go",
        family="zookeeper",
        imports=("github.com/go-zookeeper/zk", "github.com/samuel/go-zookeeper/zk"),
        makers=("NewLock",),
        types=("zk.Lock",),
        lease="session",
        acquires=(Method("Lock", (0, 0), fails="error"),),
        releases=(Method("Unlock", (0, 0)),),
        release_guard=_SESSION,
    ),
    CodeLibrary(
        name="Redisson",
        language="java",
        family="redis",
        imports=("org.redisson",),
        makers=("getLock", "getFairLock", "getSpinLock", "getFencedLock"),
        types=("RLock", "RFencedLock"),
        lease_default_ns=30 * S,
        renewing=True,  # the watchdog, as long as no lease is given
        acquires=(
            Method("lock", (0, 0)),
            Method("lock", (2, 2), 0, unit_at=1, renewing=False),
            Method("lockInterruptibly", (0, 0)),
            Method("lockInterruptibly", (2, 2), 0, unit_at=1, renewing=False),
            Method("tryLock", (0, 0), fails="false"),
            Method("tryLock", (2, 2), fails="false"),
            Method("tryLock", (3, 3), 1, unit_at=2, renewing=False, fails="false"),
        ),
        releases=(Method("unlock", (0, 0)), Method("forceUnlock", (0, 0), guarded=False)),
        read="main of August 2026",
    ),
    CodeLibrary(
        name="Curator",
        language="java",
        family="zookeeper",
        imports=("org.apache.curator",),
        makers=("InterProcessMutex", "InterProcessSemaphoreMutex"),
        types=("InterProcessMutex", "InterProcessSemaphoreMutex", "InterProcessLock"),
        lease="session",
        acquires=(Method("acquire", (0, 0)), Method("acquire", (2, 2), fails="false")),
        releases=(Method("release", (0, 0)),),
        release_guard=_SESSION,
    ),
    CodeLibrary(
        name="Spring Integration",
        language="java",
        family="redis",
        imports=("org.springframework.integration",),
        makers=("obtain",),
        lease_default_ns=60 * S,
        acquires=(
            Method("lock", (0, 0)),
            Method("lockInterruptibly", (0, 0)),
            Method("tryLock", (0, 0), fails="false"),
            Method("tryLock", (2, 2), fails="false"),
        ),
        releases=(Method("unlock", (0, 0)),),
    ),
    CodeLibrary(
        name="redlock-rb",
        language="ruby",
        family="redis",
        imports=("redlock",),
        makers=("Redlock.Client.new",),
        guess=r"redlock|lock_manager|(^|\.)_?(dlm|lock_client)$",
        handle="answer",
        acquires=(
            Method("lock", (2, 3), 1, (), MS, fails="false", block=True, runs=True,
                   without_word="extend"),
            Method("lock!", (2, 3), 1, (), MS, block=True),
        ),
        renews=(Method("lock", (2, 3), 1, (), MS, fails="false", needs_word="extend"),),
        releases=(Method("unlock", (1, 1)),),
        read="2.0.6",
    ),
    CodeLibrary(
        name="redis-mutex",
        language="ruby",
        family="redis",
        imports=("redis-mutex", "redis_mutex"),
        makers=("RedisMutex.new", "Redis.Mutex.new"),
        lease_default_ns=10 * S,
        lease_options=("expire",),
        acquires=(
            Method("lock", (0, 0), fails="false"),
            Method("lock!", (0, 0)),
            Method("with_lock", block=True, lease_words=("expire",)),
        ),
        releases=(Method("unlock", (0, 1)), Method("unlock!", (0, 1))),
    ),
)  # fmt: skip
_BY_ANNOTATION = CodeLibrary(
    name="ShedLock",
    language="java",
    family="sql",
    imports=("net.javacrumbs.shedlock",),
    lease_unit_ns=MS,  # a bare number in lockAtMostFor
    release_guard="a condition on the name and, in most stores, on who locked it",
    read="7.9.0",
)
_BY_BLOCK = CodeLibrary(
    name="with_advisory_lock",
    language="ruby",
    family="postgres",
    imports=(),
    lease="session",
    release_guard="the session that took it",
    acquires=(
        Method("with_advisory_lock", block=True),
        Method("with_advisory_lock!", block=True),
        Method("with_advisory_lock_result", block=True),
    ),
    read="7.5.0",
)
CODE_LIBRARIES = {row.name: row for row in (*_ROWS, _BY_ANNOTATION, _BY_BLOCK)}
TYPED = {"java", "go"}  # languages whose names always have a type, seen or not

# A token made by one of these is fresh if the call is made for each acquisition.
FRESH_CODE = (
    "crypto.", "uuid", "randomUUID", "nanoid", "ulid", "Math.random", "rand.", "xid.", "ksuid.",
    "UUID.", "SecureRandom", "ThreadLocalRandom", "Random", "randomBytes", "cuid", "v4",
    "RandomStringUtils", "ULID",
)  # fmt: skip
REUSABLE_CODE = (
    "os.hostname", "process.pid", "os.Hostname", "os.Getpid", "InetAddress.",
    "Thread.currentThread", "ManagementFactory", "ProcessHandle.current", "Socket.gethostname",
    "Process.pid",
    "Thread.current", "process.env.HOSTNAME",
)  # fmt: skip
