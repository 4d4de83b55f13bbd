"""The wall clock of one worker: started with the clock shim, skewed and read back.

    clock = WorkerClock("w0", run_dir / "workers" / "w0.clock", shim)
    clock.environment()          # for the process to be started, {} without a shim
    clock.reading(pid)           # what the clock of that process says now

A worker is not asked for its time: its library alone knows whether it ever looks.  Instead the
process' own memory map shows that the shim is loaded, and a witness, started with the same shim
on the same file, reads the clock.  How often the worker looked is in ``reads`` (the witness' own
looks taken off).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import ClockReading
from harness.core.skew import SkewFile

# Both clocks in one breath: the monotonic one is common to all processes and tells when it was.
_WITNESS = "import time; print(time.monotonic_ns(), time.time_ns(), time.monotonic_ns())"


class WorkerClock:
    """Clock of a worker, over all its incarnations; ``shim`` None: the machine's clock."""

    def __init__(self, name: str, path: Path, shim: Path | None) -> None:
        self._name, self._shim = name, shim
        self._file = SkewFile(path)
        self._witnessed = 0  # looks of the witnesses, which are not the worker's
        if shim is not None:
            self._file.create()

    def environment(self) -> Mapping[str, str]:
        """Variables for the worker's process."""
        return {} if self._shim is None else self._file.environment(self._shim)

    def file(self) -> SkewFile:
        """The control file; HarnessError if the worker was started without the shim."""
        if self._shim is None:
            raise HarnessError(
                f"{self._name} was started without the clock shim, so its clock is the machine's"
            )
        return self._file

    def reading(self, pid: int) -> ClockReading:
        """HarnessError if the process does not run under the shim."""
        file = self.file()
        try:
            loaded = str(self._shim) in Path(f"/proc/{pid}/maps").read_text()
        except OSError as error:
            raise HarnessError(f"{self._name}: no memory map of pid {pid}: {error}") from error
        if not loaded:
            raise HarnessError(f"{self._name}: the clock shim is not loaded in pid {pid}")
        before = file.reads()
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _WITNESS],
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
            timeout=limits.WORKER_START_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise HarnessError(f"{self._name}: the clock could not be read: {done.stderr.strip()}")
        early_ns, there_ns, late_ns = map(int, done.stdout.split())
        ours_ns = time.time_ns() - time.monotonic_ns()
        offset_ns = there_ns - (early_ns + late_ns) // 2 - ours_ns
        own = before - self._witnessed
        self._witnessed += file.reads() - before
        return ClockReading(offset_ns, (late_ns - early_ns) // 2 + 10_000, own)
