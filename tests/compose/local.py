"""Real servers for the live tests of the process runtime, and a ledger on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compose.process_ports import FreePorts, listens
from compose.process_runtime import ProcessCluster, ProcessRuntime
from compose.process_server import LocalServer
from compose.servers import find_toxiproxy
from compose.toxiproxy import ToxiproxyClient
from harness.core.errors import RefusedError
from harness.core.undo import Step, kill_marked_step, perform

ROOT = Path(__file__).resolve().parents[2]

UNDO = "import json, sys\nfrom harness.core.undo import perform\n" + (
    "for step in json.load(sys.stdin): print(perform(step))"
)


def need(backend: str = "redis-single") -> None:
    """Skips the test, with the reason, where the process runtime cannot run the backend."""
    reason = ProcessRuntime().can(backend)
    if reason:
        pytest.skip(reason)


class DiskLedger:
    """``protocols.Ledger`` that writes one JSON line per promise."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: list[int] = []
        self._promised = 0

    def promise(self, steps: Sequence[Step], *, why: str) -> int:
        with self.path.open("a") as file:
            file.write(json.dumps({"steps": list(steps), "why": why}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._promised += 1
        return self._promised

    def done(self, promise: int) -> None:
        self.kept.append(promise)

    @property
    def steps(self) -> list[Step]:
        return steps_in(self.path)


def steps_in(path: Path) -> list[Step]:
    return [step for line in path.read_text().splitlines() for step in json.loads(line)["steps"]]


def undo_elsewhere(steps: Sequence[Step]) -> str:
    """Performs undo steps in another process, as ``heal`` would; returns what it said."""
    done = subprocess.run(
        [sys.executable, "-c", UNDO],
        cwd=ROOT,
        input=json.dumps(list(steps)),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def cluster_up(
    folder: Path,
    backend: str = "redis-single",
    *,
    workers: int = 2,
    clock_shim: Path | None = None,
    **options: Any,
) -> Iterator[ProcessCluster]:
    """A running cluster that is taken down at the end, whatever happens."""
    runtime = ProcessRuntime()
    runtime.clock_shim = clock_shim
    cluster = runtime.up(
        backend,
        options,
        workers=workers,
        run_dir=folder,
        ledger=DiskLedger(folder / "ledger.jsonl"),
    )
    assert isinstance(cluster, ProcessCluster)
    try:
        yield cluster
    finally:
        cluster.down()


@contextmanager
def toxiproxy_up(folder: Path, mark: str) -> Iterator[tuple[ToxiproxyClient, LocalServer]]:
    """A bare toxiproxy-server."""
    try:
        binary = find_toxiproxy()
    except RefusedError as error:
        pytest.skip(str(error))
    port = FreePorts().take()
    server = LocalServer(
        "toxiproxy",
        [str(binary.path), "-host", "127.0.0.1", "-port", str(port)],
        mark=mark,
        log=folder / f"{mark}.log",
        cwd=folder,
    )
    api = ToxiproxyClient(f"http://127.0.0.1:{port}")
    server.spawn()
    try:
        server.await_ready(lambda: listens(server.pid, port), timeout_s=10)
        yield api, server
    finally:
        server.kill()
        perform(kill_marked_step(mark))
