"""A small real world for fault tests: a server, a proxy, worker processes that a loop watches."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clients.sim.connection import SimConn
from clients.sim.network import SimLink
from compose.process_runtime import ProcessCluster
from compose.waiting import wait_until
from harness.core.clock import Clock, MonotonicClock, ms
from harness.core.errors import HarnessError
from harness.core.protocols import Cluster, Skewable, View, WorkerHandle, session_name
from harness.core.undo import catches_signal, kill_marked_step, perform
from harness.registries import has_peers
from harness.workers import ProcessPool, ProcessWorker
from nemesis.clockshim import build
from tests.compose.local import DiskLedger, cluster_up, need

# Stands for a client: waits for input for ever.  Faults on workers look at the process alone.
IDLE = [
    sys.executable,
    "-c",
    "import sys; from clients.worker import block; block.install(); sys.stdin.read()",
]


@dataclass
class FixedView:
    """Who holds and who waits, as the test says."""

    holding: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    granting: list[str] = field(default_factory=list)

    def holders(self) -> Sequence[int]:
        return self.holding

    def waiters(self) -> Sequence[int]:
        return self.waiting

    def granters(self) -> Sequence[str]:
        return self.granting


@dataclass
class TestWorld:
    """``protocols.World``."""

    __test__ = False

    cluster: Cluster
    workers: Sequence[WorkerHandle]
    clock: Clock = field(default_factory=MonotonicClock)
    view: View = field(default_factory=FixedView)
    runtime: str = "process"
    backend: str = "redis-single"

    @property
    def peers(self) -> bool:
        return has_peers(self.backend)


@contextmanager
def containers_world(
    backend: str,
    folder: Path,
    *,
    workers: int = 2,
    clocks: bool = False,
    options: Mapping[str, Any] | None = None,
    view: View | None = None,
) -> Iterator[TestWorld]:
    """The backend in containers with idle workers; skips, with the reason, where it cannot be.

    clocks: its servers run under the clock shim, if there is one.
    """
    runtime = pytest.importorskip("compose.docker_runtime").DockerRuntime()
    reason = runtime.can(backend)
    if reason:
        pytest.skip(reason)
    if clocks and not build.why_not():
        runtime.clock_shim = build.ensure()
    ledger = DiskLedger(folder / "ledger.jsonl")
    cluster = runtime.up(backend, options or {}, workers=workers, run_dir=folder, ledger=ledger)
    try:
        with worker_processes(folder, workers) as handles:
            yield TestWorld(
                cluster, handles, view=view or FixedView(), runtime="docker", backend=backend
            )
    finally:
        cluster.down()


def needs_shim(name: str) -> None:
    """Skips a test of a fault on clocks where the clock shim cannot be had, with the reason."""
    reason = build.why_not()
    if "clock" in name and reason:
        pytest.skip(reason)


def straighten(machines: Iterable[object]) -> None:
    """Clocks of workers and servers tell the right time again."""
    for machine in machines:
        if isinstance(machine, Skewable):
            with suppress(HarnessError):  # started without the shim
                machine.set_clock(offset_ns=0, rate_ppm=0)


def mend(world: TestWorld) -> None:
    """Whatever a test left: workers and servers run, links are clean."""
    for worker in world.workers:
        worker.resume()
        worker.start()
    for link in world.cluster.links:
        link.clear()
    for node in world.cluster.nodes.values():
        if node.status().state == "paused":
            node.resume()
        if node.status().state == "dead":
            node.start()


@contextmanager
def worker_processes(
    folder: Path, count: int, *, argv: Sequence[str] = IDLE
) -> Iterator[Sequence[WorkerHandle]]:
    """Processes in the harness' own pool, with a loop that takes note of deaths."""
    mark = f"test-workers-{folder.name}-{id(folder)}"
    shim = None if build.why_not() else build.ensure()
    pool = ProcessPool(argv, workers=count, log_dir=folder / "workers", mark=mark, clock_shim=shim)
    clock, stop = MonotonicClock(), threading.Event()

    def loop() -> None:
        while not stop.is_set():
            pool.poll(clock.now() + ms(20))

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        for worker in pool.handles:
            assert isinstance(worker, ProcessWorker)
            ready = partial(catches_signal, worker.pid, signal.SIGUSR2)
            assert argv is not IDLE or wait_until(ready, timeout_s=10)
        yield pool.handles
    finally:
        stop.set()
        pool.wake()
        thread.join(10)
        pool.close()
        perform(kill_marked_step(mark))


@contextmanager
def live_world(
    folder: Path, backend: str = "redis-single", *, workers: int = 2
) -> Iterator[tuple[TestWorld, ProcessCluster]]:
    """A world on the process runtime."""
    need(backend)
    shim = None if build.why_not() else build.ensure()
    with (
        cluster_up(folder, backend, workers=workers, clock_shim=shim) as cluster,
        worker_processes(folder, workers) as handles,
    ):
        yield TestWorld(cluster, handles, backend=backend), cluster


@contextmanager
def connected(world: TestWorld) -> Iterator[None]:
    """One open connection through every link, named as the adapters name theirs."""
    with ExitStack() as stack:
        for link in world.cluster.links:
            if world.runtime == "sim":
                assert isinstance(link, SimLink)
                link.connect(_Silent())
                continue
            client = socket.create_connection((link.host, link.port), timeout=10)
            stack.enter_context(client)
            name = session_name(link.port)
            words = ("CLIENT", "SETNAME", name)
            client.sendall("".join([f"*{len(words)}\r\n", *(_bulk(w) for w in words)]).encode())
            assert client.recv(5) == b"+OK\r\n"
        yield


class _Silent:
    """Owner of a simulated connection that is only there."""

    timeout_ns: int | None = None

    def replied(self, conn: SimConn, reply: object) -> None: ...

    def dropped(self, conn: SimConn, why: str) -> None: ...

    def expired(self, conn: SimConn, serial: int) -> None: ...


def _bulk(word: str) -> str:
    return f"${len(word)}\r\n{word}\r\n"
