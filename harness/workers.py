"""The live pool: one operating-system process per worker, JSON lines over its pipes.

A lock library runs in its own interpreter and environment, so each worker is started by path with
the target's Python and shares nothing with the harness but two pipes and the monotonic clock.
One process per worker is what lets a fault stop, kill or skew one client alone.

Traps: a stopped worker does not read its pipe, so ``send`` must never wait (a request is far
smaller than a pipe's buffer and there is one at a time).  A worker may die between any two lines;
its end of file is an event like any other.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from clients.environments import clean
from harness.core import limits
from harness.core.clock import NS_PER_S
from harness.core.errors import HarnessError
from harness.core.messages import PoolEvent, Reply, Request
from harness.core.protocols import ClockReading, Status, WorkerHandle
from harness.core.undo import (
    MARK_VARIABLE,
    Step,
    catches_signal,
    process_name,
    process_start_ticks,
    process_state,
    signal_step,
)
from harness.worker_clock import WorkerClock

READ_BYTES = 1 << 16
BLOCKED = "lh-blocked"  # what a worker calls itself while its main thread is blocked


class ProcessWorker:
    """One worker process (harness.core.protocols.WorkerHandle)."""

    def __init__(
        self,
        index: int,
        argv: Sequence[str],
        log: Path,
        env: dict[str, str],
        pool: ProcessPool,
        clock_shim: Path | None = None,
        users: int = 1,
    ) -> None:
        # Several workers of a run may be users of one process, which has the name of the first.
        self.index, self.name = index, f"w{index * users}"
        self.skew = WorkerClock(self.name, log.with_suffix(".clock"), clock_shim)
        env = {**env, **self.skew.environment()}
        self._argv, self._log, self._env, self._pool = list(argv), log, env, pool
        self.process: subprocess.Popen[bytes] | None = None
        self.buffer = b""
        self.buried = threading.Event()

    @property
    def pid(self) -> int:
        """Process id of the present incarnation."""
        assert self.process is not None, f"{self.name} was never started"
        return self.process.pid

    def status(self) -> Status:
        """Read back from /proc."""
        state = process_state(self.pid)
        words: dict[str | None, Literal["dead", "paused"]] = {
            None: "dead",
            "Z": "dead",
            "X": "dead",
            "T": "paused",
            "t": "paused",
        }
        return Status(words.get(state, "running"), f"{self.pid}@{process_start_ticks(self.pid)}")

    def pause(self) -> None:
        """SIGSTOP: what a long garbage collection or a frozen virtual machine does."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def undo_pause(self) -> Sequence[Step]:
        return [signal_step(self.pid, "CONT")]

    def block(self) -> None:
        """SIGUSR2, if the worker takes it (docs/reference/worker-protocol.md)."""
        if not catches_signal(self.pid, signal.SIGUSR2):
            raise HarnessError(
                f"{self.name} does not catch SIGUSR2, which asks a worker to block its main thread"
            )
        os.kill(self.pid, signal.SIGUSR2)

    def unblock(self) -> None:
        if catches_signal(self.pid, signal.SIGUSR1):
            os.kill(self.pid, signal.SIGUSR1)

    def is_blocked(self) -> bool:
        return process_name(self.pid) == BLOCKED

    def undo_block(self) -> Sequence[Step]:
        if not catches_signal(self.pid, signal.SIGUSR1):
            return []  # it would be killed by it, and is never blocked
        return [signal_step(self.pid, "USR1")]

    def set_clock(self, *, offset_ns: int, rate_ppm: int) -> None:
        self.skew.file().set(offset_ns=offset_ns, rate_ppm=rate_ppm)

    def clock_reading(self) -> ClockReading:
        return self.skew.reading(self.pid)

    def undo_clock(self) -> Sequence[Step]:
        return self.skew.file().undo()

    def kill(self) -> None:
        """SIGKILL; returns when it is dead."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait(limits.WORKER_STOP_TIMEOUT_S)

    def leave(self) -> None:
        """Closes its stdin, at which every worker ends (docs/reference/worker-protocol.md)."""
        assert self.process is not None
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def start(self) -> None:
        """Starts it anew if it is dead."""
        if self.process is None or self.status().state == "dead":
            self._pool.restart(self.index)

    def spawn(self) -> None:
        """Starts the process; its stderr is appended to the log."""
        with self._log.open("ab") as log:
            try:
                self.process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**clean(os.environ), **self._env},
                    start_new_session=True,  # Ctrl-C goes to the harness alone
                )
            except OSError as error:
                raise HarnessError(
                    f"{self.name}: {self._argv[0]} cannot be started: {error.strerror}"
                ) from error
        self.buffer = b""
        self.buried.clear()

    def last_words(self) -> str:
        """How it ended and the end of its log."""
        assert self.process is not None
        code = self.process.wait(limits.WORKER_STOP_TIMEOUT_S)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = self._log.read_text(errors="replace").strip().splitlines()[-3:]
        return f"{how}; log {self._log}" + (f": {' | '.join(lines)}" if lines else "")


class ProcessPool:
    """Worker processes and one selector over their pipes (harness.core.messages.WorkerPool)."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        workers: int,
        log_dir: Path,
        mark: str,
        clock_shim: Path | None = None,
        users: int = 1,
    ) -> None:
        """clock_shim: start them with it, so that clock faults can be done (core/skew.py).
        users: how many each of the processes will serve (harness/shared_pool.py)."""
        env = {MARK_VARIABLE: mark, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        log_dir.mkdir(parents=True, exist_ok=True)
        self._workers = [
            ProcessWorker(i, argv, log_dir / f"w{i * users}.log", env, self, clock_shim, users)
            for i in range(workers)
        ]
        self.handles: list[WorkerHandle] = list(self._workers)
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Reply).decode
        for worker in self._workers:
            worker.spawn()
            self._watch(worker)

    def send(self, worker: int, request: Request) -> None:
        """Writes one line; a broken pipe is reported by ``poll`` as a death."""
        process = self._workers[worker].process
        assert process is not None
        assert process.stdin is not None
        if process.stdin.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(process.stdin.fileno(), self._encode(request) + b"\n")

    def poll(self, deadline_ns: int) -> list[PoolEvent]:
        """Lines that arrived; waits until the deadline (CLOCK_MONOTONIC ns) for the first."""
        events: list[PoolEvent] = []
        woken = False
        while not events and not woken:
            wait_s = max(0.0, (deadline_ns - time.monotonic_ns()) / NS_PER_S)
            ready = self._selector.select(wait_s)
            if not ready:
                break
            for key, _ in ready:
                if key.data is None:
                    woken = True
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, READ_BYTES)
                else:
                    self._read(key.data, events)
        return events

    def wake(self) -> None:
        """Ends a ``poll`` in progress; safe from any thread."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b"x")

    def restart(self, worker: int) -> None:
        """Starts a dead worker anew; safe from any thread."""
        dead = self._workers[worker]
        # The loop must have taken note of the death first, or it would mistake the new process'
        # hello for the old one's.
        if not dead.buried.wait(limits.WORKER_STOP_TIMEOUT_S):
            raise HarnessError(f"{dead.name}: its end was never noticed; is the loop running?")
        dead.spawn()
        self._watch(dead)
        self.wake()

    def close(self) -> None:
        """Closes their stdin, waits a moment, kills what is left (also stopped ones)."""
        for worker in self._workers:
            if worker.process is not None and worker.process.stdin is not None:
                with contextlib.suppress(OSError):
                    worker.process.stdin.close()
        deadline = time.monotonic() + limits.WORKER_STOP_TIMEOUT_S
        for worker in self._workers:
            if worker.process is None:
                continue
            paused = worker.status().state == "paused"
            try:
                worker.process.wait(0.01 if paused else max(0.01, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            if worker.process.stdout is not None:
                worker.process.stdout.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _watch(self, worker: ProcessWorker) -> None:
        assert worker.process is not None
        assert worker.process.stdout is not None
        self._selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def _read(self, worker: ProcessWorker, events: list[PoolEvent]) -> None:
        assert worker.process is not None
        stdout: BinaryIO = worker.process.stdout  # type: ignore[assignment]  # a pipe, see spawn
        data = os.read(stdout.fileno(), READ_BYTES)
        now_ns = time.monotonic_ns()
        if not data:
            self._selector.unregister(stdout)
            stdout.close()
            if worker.process.stdin is not None:
                worker.process.stdin.close()
            events.append(PoolEvent(worker.index, now_ns, died=worker.last_words()))
            worker.buried.set()
            return
        *lines, worker.buffer = (worker.buffer + data).split(b"\n")
        if len(worker.buffer) > limits.LINE_BYTES_MAX:
            raise HarnessError(
                f"{worker.name}: a line of more than {limits.LINE_BYTES_MAX} bytes; "
                "a worker's stdout carries the protocol only"
            )
        for line in lines:
            try:
                events.append(PoolEvent(worker.index, now_ns, self._decode(line)))
            except msgspec.DecodeError as error:
                raise HarnessError(
                    f"{worker.name}: not a line of the protocol: {line[:200]!r} ({error})"
                ) from error
