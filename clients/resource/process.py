"""Starts, kills and stops the protected resource as a process of its own.

    with ResourceProcess.start(directory, "fenced") as resource:
        worker_options = {"resource": resource.place()}

Traps: the process ends by itself when its stdin does, so it cannot outlive the harness, not even
after ``kill -9``.  ``restart`` keeps directory and port, so workers reconnect without being told.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.core.errors import HarnessError
from harness.core.limits import WORKER_START_TIMEOUT_S, WORKER_STOP_TIMEOUT_S

LOG = "resource.log"


class ResourceProcess:
    """A running resource.  ``env`` is given to the process (marks for ``heal``)."""

    def __init__(self, directory: Path, mode: str, env: Mapping[str, str] | None) -> None:
        self.directory = directory
        self.mode = mode
        self.port = 0
        self._env = dict(env) if env is not None else None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(
        cls, directory: Path, mode: str, *, port: int = 0, env: Mapping[str, str] | None = None
    ) -> ResourceProcess:
        """Starts it and returns when it listens; HarnessError with its own words if it does not."""
        resource = cls(directory.absolute(), mode, env)
        resource._spawn(port)
        return resource

    @property
    def pid(self) -> int:
        return self._running().pid

    def place(self) -> dict[str, Any]:
        """What ``open`` needs to know: {"host", "port"}."""
        return {"host": "127.0.0.1", "port": self.port}

    def exit_status(self) -> int | None:
        """None while it runs (a resource that ends by itself is a harness failure)."""
        return self._running().poll()

    def kill(self) -> None:
        """SIGKILL; returns when it is dead."""
        process = self._running()
        process.kill()
        process.wait()
        self._close_pipes(process)

    def restart(self) -> None:
        """Starts it again after ``kill`` with its data, on the same port."""
        self._spawn(self.port)

    def stop(self) -> None:
        """Stops it in order (stdin ends), by force if it does not listen."""
        process = self._process
        if process is None:
            return
        self._process = None
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(WORKER_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._close_pipes(process)

    def __enter__(self) -> ResourceProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise HarnessError("the resource is not running; it was stopped before")
        return self._process

    def _spawn(self, port: int) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-m", "clients.resource", "--dir", str(self.directory)]
        argv += ["--mode", self.mode, "--port", str(port), "--stop-on-eof"]
        with (self.directory / LOG).open("ab") as log:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._env,
                cwd=Path(__file__).parents[2],
                start_new_session=True,
            )
        line = _first_line(process)
        if line is None:
            process.kill()
            process.wait()
            self._close_pipes(process)
            said = (self.directory / LOG).read_text(errors="replace").strip().splitlines()[-5:]
            raise HarnessError(
                f"the resource in {self.directory} did not start (exit status "
                f"{process.returncode}): {' / '.join(said) or 'it said nothing'}"
            )
        self._process = process
        self.port = int(json.loads(line)["port"])

    @staticmethod
    def _close_pipes(process: subprocess.Popen[bytes]) -> None:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _first_line(process: subprocess.Popen[bytes]) -> bytes | None:
    """The first line of stdout, or None if the process ended or took too long."""
    assert process.stdout is not None
    deadline = time.monotonic() + WORKER_START_TIMEOUT_S
    while (left_s := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([process.stdout], [], [], left_s)
        if ready:
            # The line is far below PIPE_BUF, so it arrives whole.
            return process.stdout.readline() or None
    return None
