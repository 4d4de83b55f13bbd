"""Two workers of one kind, a server behind a proxy, and protected resources: the examination room.

    with Bench(argv, cluster=cluster, options={}, directory=tmp) as bench:
        reply, hold = bench.acquire(bench.one, key)

``cluster`` is None for a worker that needs no server.  Keys and holds are fresh at each call, so
the points do not see each other's locks.
"""

from __future__ import annotations

import contextlib
import itertools
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from clients.resource.process import ResourceProcess
from harness.conformance.talk import Talk, Wrong
from harness.core.errors import LockhavocError
from harness.core.messages import Reply
from harness.core.protocols import Cluster, Link
from harness.core.undo import MARK_VARIABLE, kill_marked_step, perform
from harness.stage import nodes_of

LONG_MS = 60_000  # longer than any point: nothing expires by accident on a slow machine
LEASE_END_S = 30.0  # until a lock whose holder is silent must be free, whatever ends it
KINDS = ("ttl", "session", "connection", "none")
POWERS = ("renew", "believes", "fenced", "signals-loss", "read", "permits")


class Skipped(Exception):
    """The point does not apply to this worker; the text says why."""


class Bench:
    """What the points ask with."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cluster: Cluster | None,
        options: Mapping[str, Any],
        directory: Path,
        short_ms: int,
    ) -> None:
        self.cluster, self.short_ms = cluster, short_ms
        self.options, self.directory = dict(options), directory
        self.mark = uuid.uuid4().hex
        self.said: list[str] = []
        env = {MARK_VARIABLE: self.mark, "PYTHONDONTWRITEBYTECODE": "1"}
        self.one, self.two = (
            Talk(name, argv, directory / f"worker-{name}.log", env, self.said)
            for name in ("one", "two")
        )
        self.workers = (self.one, self.two)
        self.unopened = set(self.workers)
        self._numbers = itertools.count(1)
        self._resources: dict[str, ResourceProcess] = {}

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self.workers:
            worker.kill()
        for resource in self._resources.values():
            resource.stop()
        perform(kill_marked_step(self.mark))

    @property
    def powers(self) -> Sequence[str]:
        return list(self.one.hello.get("powers") or ())

    @property
    def lease(self) -> str:
        return str((self.one.hello.get("lease") or {}).get("kind"))

    def need(self, power: str) -> None:
        """Skipped, unless the worker says that it has the power."""
        if power not in self.powers:
            raise Skipped(f"hello does not name the power {power}")

    def key(self) -> str:
        return f"check-{next(self._numbers)}-{self.mark[:8]}"

    def hold(self) -> str:
        return f"h-{next(self._numbers)}"

    def open(self, worker: Talk, *, resource: str | None = None, **options: Any) -> Reply:
        """Sends open; ``resource`` is the mode of the one that it gets."""
        nodes: list[dict[str, Any]] = []
        if self.cluster is not None:
            index = self.workers.index(worker)
            nodes = nodes_of(self.cluster.endpoints(index), index)
        place = self.resource(resource).place() if resource else None
        given = {"nodes": nodes, "options": {**self.options, **options}, "resource": place}
        reply = worker.ask("open", options=given)
        if reply.type == "ok":
            self.unopened.discard(worker)
        return reply

    def close(self, worker: Talk) -> None:
        self.unopened.add(worker)
        must(worker.ask("close"), "ok")

    def ready(self, *, fresh: bool = False, opened: bool = True) -> None:
        """Both workers run and are open; ``fresh``: as new processes."""
        for worker in self.workers:
            if fresh or worker.process is None or worker.process.poll() is not None:
                worker.kill()
                self.unopened.add(worker)
                worker.start()
            if opened and worker in self.unopened:
                must(self.open(worker), "ok")

    def acquire(
        self, worker: Talk, key: str, timeout_ms: int = 0, ttl_ms: int = LONG_MS
    ) -> tuple[Reply, str]:
        """The reply to an acquire, and its hold; the answer may take as long as the wait."""
        hold, within = self.hold(), 20.0 + timeout_ms / 1000
        fields: dict[str, Any] = {"key": key, "hold": hold, "ttl_ms": ttl_ms}
        return worker.ask("acquire", timeout_ms=timeout_ms, within_s=within, **fields), hold

    def hold_lock(self, worker: Talk, ttl_ms: int = LONG_MS) -> tuple[str, str, Reply]:
        """A fresh key that ``worker`` has locked: key, hold and the reply."""
        key = self.key()
        reply, hold = self.acquire(worker, key, ttl_ms=ttl_ms)
        must(reply, "ok")
        return key, hold, reply

    def resource(self, mode: str) -> ResourceProcess:
        """The protected resource of this mode, started at the first call."""
        if mode not in self._resources:
            self._resources[mode] = ResourceProcess.start(self.directory / mode, mode)
        return self._resources[mode]

    def links(self, worker: Talk) -> list[Link]:
        """The ways from this worker to the servers; Skipped where there is none."""
        if self.cluster is None:
            raise Skipped("there is no server (--backend none)")
        name = f"w{self.workers.index(worker)}"
        return [link for link in self.cluster.links if link.src == name]

    @contextlib.contextmanager
    def late(self, worker: Talk, latency_ms: int) -> Iterator[None]:
        """All that the servers answer to this worker comes so much later."""
        links = self.links(worker)
        try:
            for link in links:
                attributes = {"latency": latency_ms, "jitter": 0}
                link.add_toxic("latency", "downstream", attributes)
            yield
        finally:
            self._clear(links)

    @contextlib.contextmanager
    def severed(self, worker: Talk) -> Iterator[None]:
        """No way to any server."""
        links = self.links(worker)
        try:
            for link in links:
                link.set_enabled(False)
            yield
        finally:
            self._clear(links)

    @staticmethod
    def _clear(links: Sequence[Link]) -> None:
        problems = []
        for link in links:
            try:
                link.clear()
            except LockhavocError as error:
                problems.append(error)
        if problems:
            raise problems[0]


def must(reply: Reply, kind: str, error: str | None = None) -> None:
    """Wrong, unless the reply is of this type (and says this)."""
    wanted = f"{kind} {error!r}" if error else kind
    if reply.type != kind or (error is not None and reply.error != error):
        said = f"{reply.type} {reply.error!r}" if reply.error else reply.type
        raise Wrong(f"the answer must be {wanted}, it is {said}")


def elapsed_since(start: float) -> float:
    """Seconds since a reading of ``time.monotonic``."""
    return time.monotonic() - start
