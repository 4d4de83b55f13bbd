"""What harness and workers say to each other: JSON lines on the worker's stdin and stdout.

The worker side is standard library only (``clients/worker``), so these records are the harness'
typed view of the same objects.  The protocol page in docs/reference lists every field.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from harness.core.protocols import WorkerHandle


class Request(msgspec.Struct, omit_defaults=True, gc=False):
    """Harness -> worker.  ``do``: open | acquire | release | renew | believes | write | read |
    close.  One request at a time per worker.

    hold: the id of the acquire attempt (fresh for each).  ttl_ms, timeout_ms: lease length and
    longest wait of an acquire.  mode: "read" for an acquire that shares the lock with other
    readers.  k: permits of the semaphore of which an acquire takes one.  token: fencing token for a
    write.  options: for ``open``
    {"nodes": [...], "options": {...}, "resource": {"host", "port"} | null}.  user: which of the
    users that share a worker; then one request at a time per user.
    """

    id: int
    do: str
    key: str | None = None
    hold: str | None = None
    ttl_ms: int | None = None
    timeout_ms: int | None = None
    token: int | None = None
    value: Any = None
    options: dict[str, Any] = {}
    user: int = 0
    mode: str | None = None
    k: int | None = None


class Reply(msgspec.Struct, omit_defaults=True, gc=False):
    """Worker -> harness.  Either the answer to request ``id``, or (id 0) an event by itself:
    ``event`` = hello (versions, lease, powers in ``value``) | lost (key and hold of a lock that
    the library says was lost) | log.

    type: ok | fail | info.  invoke, complete: ns of CLOCK_MONOTONIC, stamped by the worker round
    the library call alone.  value: for acquire {"owner": str, "token": int | None}.
    error: busy | not-held | mismatch | stale, or the exception as text.  user: of an event, whose
    lock it is about.
    """

    id: int = 0
    type: str = ""
    invoke: int = 0
    complete: int = 0
    value: Any = None
    error: str | None = None
    event: str = ""
    key: str | None = None
    hold: str | None = None
    user: int = 0


class PoolEvent(msgspec.Struct, gc=False):
    """What ``WorkerPool.poll`` returns: a reply with the instant the harness got it, or the news
    that a worker died (``reply`` is None and ``died`` says how)."""

    worker: int
    received_ns: int
    reply: Reply | None = None
    died: str = ""


class WorkerPool(Protocol):
    """The client workers of a run: OS processes (harness.workers) or simulated (clients.sim)."""

    handles: list[WorkerHandle]

    def send(self, worker: int, request: Request) -> None:
        """Hands a request over; never blocks, also when the worker is stopped."""

    def poll(self, deadline_ns: int) -> list[PoolEvent]:
        """Waits for events until ``deadline_ns`` (a reading of the run's clock) at the latest.

        May return an empty list early when ``wake`` was called.  In the simulation this is what
        moves the virtual clock on.
        """

    def wake(self) -> None:
        """Makes a ``poll`` in progress return (called from nemesis threads)."""

    def restart(self, worker: int) -> None:
        """Starts a dead worker anew (the hello event follows)."""

    def close(self) -> None:
        """Stops all workers; a stopped (SIGSTOP) one is killed."""
