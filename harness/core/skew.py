"""The control file of the clock shim: what the wall clock of one process is told to say.

    clock = SkewFile(run_dir / "servers" / "redis.clock")
    clock.create()
    env |= clock.environment(shim)                     # for the process to be skewed
    clock.set(offset_ns=10_000_000_000, rate_ppm=0)    # now, also while it runs
    clock.told_ns()                                    # offset that the shim adds now

The shim (nemesis/clockshim/clockshim.c) maps the file and reads it at every look at the clock, so
a change takes effect at once and costs nothing else.  A file of zeros is the true time.

Traps: writer and reader share memory, not a lock: the generation is odd while the fields change,
and the shim reads again.  ``reads`` is the shim's to write, so it is never overwritten here.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path

from harness.core.clock import MonotonicClock
from harness.core.errors import HarnessError
from harness.core.undo import Step, true_time_step

VARIABLE = "LOCKHAVOC_CLOCK"
NS_PER_PPM_MS = 1  # one ppm is one ns per ms
_FIELD = struct.Struct("=q")
_SIZE = 5 * _FIELD.size  # generation, base_ns, offset_ns, rate_ppm, reads: as in the C source
_NS_PER_MS = 1_000_000


class SkewFile:
    """One control file, of one process (and its later incarnations)."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    def create(self) -> None:
        """Makes it, with the true time."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(bytes(_SIZE))

    def environment(self, shim: Path, seen_as: Path | None = None) -> Mapping[str, str]:
        """Variables with which a process must be started to obey this file; ``seen_as``: the
        file's path as that process sees it, if it is another."""
        return {"LD_PRELOAD": str(shim), VARIABLE: str(seen_as or self.path)}

    def set(self, *, offset_ns: int, rate_ppm: int) -> None:
        """From now on the clock is ahead by ``offset_ns``, growing by ``rate_ppm``; negative is
        behind and slow.  HarnessError if the file is gone."""
        try:
            with self.path.open("r+b") as file, mmap.mmap(file.fileno(), _SIZE) as page:
                generation = self._field(page, 0)
                fields = (MonotonicClock().now(), offset_ns, rate_ppm)
                self._write(page, 0, generation + 1)
                for index, value in enumerate(fields, 1):
                    self._write(page, index, value)
                self._write(page, 0, generation + 2)
        except OSError as error:
            raise HarnessError(f"clock file {self.path}: {error.strerror}") from error

    def told_ns(self) -> int:
        """The offset that the shim adds at this moment."""
        base_ns, offset_ns, rate_ppm, _ = self._read()
        since_ms = (MonotonicClock().now() - base_ns) // _NS_PER_MS
        return offset_ns + since_ms * rate_ppm * NS_PER_PPM_MS if rate_ppm else offset_ns

    def reads(self) -> int:
        """How often a process was told a skewed time since the file was made."""
        return self._read()[3]

    def undo(self) -> list[Step]:
        """Steps that give the true time back, from any process."""
        return [true_time_step(str(self.path))]

    def _read(self) -> tuple[int, int, int, int]:
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise HarnessError(f"clock file {self.path}: {error.strerror}") from error
        _, base_ns, offset_ns, rate_ppm, reads = struct.unpack("=5q", data)
        return base_ns, offset_ns, rate_ppm, reads

    @staticmethod
    def _field(page: mmap.mmap, index: int) -> int:
        value: int = _FIELD.unpack_from(page, index * _FIELD.size)[0]
        return value

    @staticmethod
    def _write(page: mmap.mmap, index: int, value: int) -> None:
        _FIELD.pack_into(page, index * _FIELD.size, value)
