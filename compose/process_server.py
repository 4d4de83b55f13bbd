"""One local server process: spawned with a mark, watched through /proc, killed for good.

    server = LocalServer("redis", argv, mark=mark, log=log, cwd=data)
    server.spawn(); server.await_ready(answers, timeout_s=30); server.kill()

Traps: a crash of the harness between spawning and writing down a pid must leave nothing behind,
so no pid is written down: the process carries ``LOCKHAVOC_MARK`` in its environment, and a
``kill-marked`` undo step, promised before, finds it.  Redis overwrites its environment to set a
process title, hence ``--set-proc-title no`` in backends/resp.py.  A killed child stays a zombie
until it is waited for; its pid is not free before.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compose.commands import run_to_end
from harness.core import limits
from harness.core.clock import NS_PER_S, MonotonicClock, ms
from harness.core.errors import HarnessError
from harness.core.protocols import Status
from harness.core.undo import (
    MARK_VARIABLE,
    Step,
    process_start_ticks,
    process_state,
    process_tree,
    signal_step,
)

_CLOCK = MonotonicClock()
_POLL_MS = 2
_LOG_LINES = 12
_LOG_BYTES_MAX = 16_384


class EndedError(HarnessError):
    """The process ended by itself while it was waited for; ``log_tail`` is what it said last."""

    def __init__(self, message: str, log_tail: str) -> None:
        super().__init__(message)
        self.log_tail = log_tail


class LocalServer:
    """A server process in a session of its own; may be spawned again after it died."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        mark: str,
        log: Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.argv, self.log = name, list(argv), log
        # A small environment of its own: servers have no use for secrets of the caller's.
        self.env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        self.env |= {**(env or {}), MARK_VARIABLE: mark}
        self.cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._start: int | None = None
        self._log_from = 0  # where the log of the process spawned last begins

    @property
    def pid(self) -> int:
        """Pid of the process spawned last; HarnessError if there was none."""
        if self._process is None:
            raise HarnessError(f"{self.name} was not started")
        return self._process.pid

    def spawn(self) -> None:
        """Starts the process; HarnessError if it cannot be executed."""
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.log.open("ab") as log:
                self._log_from = log.tell()
                self._process = subprocess.Popen(
                    self.argv,
                    env=self.env,
                    cwd=self.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C reaches the harness alone, which then takes servers down in order.
                    start_new_session=True,
                )
        except OSError as error:
            raise HarnessError(f"cannot start {self.name} ({self.argv[0]}): {error}") from error
        self._start = process_start_ticks(self._process.pid)

    def prepare(self, argv: Sequence[str]) -> None:
        """Runs a command to its end where the server will run; HarnessError with what it said."""
        run_to_end(
            argv,
            f"{self.name}: {' '.join(argv)}",
            env=self.env,
            timeout_s=limits.NODE_READY_TIMEOUT_S,
            lines=_LOG_LINES,
            cwd=self.cwd,
        )

    def await_ready(self, is_ready: Callable[[], bool], *, timeout_s: float) -> None:
        """Waits until ``is_ready``; EndedError if the process ends, HarnessError if too late.

        A HarnessError of ``is_ready`` counts as "not yet", but an EndedError as what it says.
        """
        deadline_ns = _CLOCK.now() + round(timeout_s * NS_PER_S)
        last = "it does not answer"
        while True:
            if self.status().state == "dead":
                tail = self.log_tail()
                raise EndedError(
                    f"{self.name} ended at start{self._exit()}; command: {' '.join(self.argv)}; "
                    f"last lines of {self.log}:\n{tail}",
                    tail,
                )
            try:
                if is_ready():
                    return
            except EndedError:  # it lives on, but as good as dead
                raise
            except HarnessError as error:
                last = str(error)
            if _CLOCK.now() >= deadline_ns:
                raise HarnessError(
                    f"{self.name} was not ready within {timeout_s:g} s: {last}; "
                    f"last lines of {self.log}:\n{self.log_tail()}"
                )
            _CLOCK.sleep_until(_CLOCK.now() + ms(_POLL_MS))

    def status(self) -> Status:
        """As /proc tells it; identity is "pid@start ticks"."""
        if self._process is None:
            return Status("dead", "never started")
        # poll() reaps it if it ended, so that its pid is not taken for a live process.
        ended = self._process.poll() is not None
        identity = f"{self._process.pid}@{self._start}"
        letter = None if ended else process_state(self._process.pid)
        if letter is None or letter in "ZXx":
            self._process.poll()  # it ended between the two looks: take its exit code
            return Status("dead", identity)
        return Status("paused" if letter in "Tt" else "running", identity)

    def signal(self, number: int, what: str) -> None:
        """Sends a signal to it and its children; HarnessError if the process is dead."""
        if self.status().state == "dead":
            raise HarnessError(f"{self.name} is dead, so it cannot be {what}")
        told: set[int] = set()
        while left := set(process_tree(self.pid)) - told:  # a child may just have been made
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            told |= left

    def kill(self) -> None:
        """SIGKILL to it and its children; returns when it is reaped."""
        # Once it was reaped its pid may be another's; children that outlived it are left to the
        # ``kill-marked`` step.
        if self._process is None or self._process.poll() is not None:
            return
        # All at once: children that were stopped would not notice that their parent is gone.
        for pid in process_tree(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        try:
            self._process.wait(limits.WORKER_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise HarnessError(
                f"{self.name} (pid {self._process.pid}) did not die within "
                f"{limits.WORKER_STOP_TIMEOUT_S} s of SIGKILL"
            ) from error

    def undo_pause(self) -> Sequence[Step]:
        """SIGCONT from any process; empty if it was never started."""
        return [] if self._process is None else [signal_step(self.pid, tree=True)]

    def log_tail(self) -> str:
        """Last lines that the process spawned last wrote to its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(self._log_from, self.log.stat().st_size - _LOG_BYTES_MAX))
                lines = file.read().decode(errors="replace").strip().splitlines()
        except OSError as error:
            return f"(no log: {error})"
        return "\n".join(lines[-_LOG_LINES:]) or "(its log is empty)"

    def _exit(self) -> str:
        code = self._process.returncode if self._process else None
        if code is None:
            return ""
        return f" by signal {-code}" if code < 0 else f" with exit code {code}"
