"""The history of a run as it grows, line by line, on disk.

Lines are written in the order in which the harness learns of events, with the harness' own times.
They are flushed at least every 100 ms, so a crash loses no more than that, and ``check`` can
read what is there.  ``harness.stamps`` makes the final history from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from harness.core.clock import NS_PER_MS, Clock
from harness.core.errors import HarnessError
from harness.core.history import NEMESIS, Header, Op, Type
from harness.core.messages import Reply
from harness.generator import Step

FILE = "history.jsonl"
FLUSH_EVERY_NS = 100 * NS_PER_MS
FLUSH_LINES_MAX = 2000
REPLY_FIELDS = ("token", "seq", "version", "value")  # of a reply's value; the rest stays out


class Journal:
    """Appends events to ``history.jsonl`` and keeps them in memory for the analysis."""

    def __init__(self, path: Path, header: Header, clock: Clock) -> None:
        self.path = path
        self.header = header
        self.ops: list[Op] = []
        self._clock = clock
        self._encoder = msgspec.json.Encoder()
        self._buffer: list[Op] = []
        self._flushed_ns = clock.now()
        self._file: BinaryIO = path.open("wb")
        self._file.write(self._encoder.encode(header) + b"\n")
        self._file.flush()

    def invoke(self, time_ns: int, process: int, f: str, key: str, value: dict[str, Any]) -> None:
        """An operation was handed to a worker."""
        self._append(Op(len(self.ops), time_ns, process, Type.INVOKE, f, key, value))

    def complete(
        self, time_ns: int, process: int, step: Step, reply: Reply, *, sent_ns: int, start_ns: int
    ) -> None:
        """An operation ended.  The worker's own stamps go to ``extra`` if they say more."""
        value: dict[str, Any] = {"hold": step.hold}
        given = reply.value
        if isinstance(given, dict):
            for name in REPLY_FIELDS:
                found = given.get(name)
                if found is not None:
                    value[name] = found
        op = Op(len(self.ops), time_ns, process, reply.type, step.do, step.key, value, reply.error)
        if reply.invoke and (
            reply.invoke - start_ns != sent_ns or reply.complete - start_ns != time_ns
        ):
            op.extra = {"invoke": reply.invoke - start_ns, "complete": reply.complete - start_ns}
        self._append(op)

    def lost(self, time_ns: int, process: int, reply: Reply) -> None:
        """The library told its user that a lock was lost."""
        value = {"hold": reply.hold, "process": process}
        self._append(Op(len(self.ops), time_ns, NEMESIS, Type.INFO, "lost", reply.key, value))

    def nemesis(self, time_ns: int, f: str, value: dict[str, Any]) -> None:
        """Something the nemesis did."""
        self._append(Op(len(self.ops), time_ns, NEMESIS, Type.INFO, f, None, value))

    def _append(self, op: Op) -> None:
        self.ops.append(op)
        self._buffer.append(op)
        if len(self._buffer) >= FLUSH_LINES_MAX:
            self.flush()

    def flush_if_due(self) -> None:
        """Flushes when the last time is long enough ago."""
        if self._buffer and self._clock.now() - self._flushed_ns >= FLUSH_EVERY_NS:
            self.flush()

    def flush(self) -> None:
        """Hands everything to the operating system."""
        try:
            self._file.write(self._encoder.encode_lines(self._buffer))
            self._file.flush()
        except OSError as error:
            raise HarnessError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._buffer.clear()
        self._flushed_ns = self._clock.now()

    def close(self) -> None:
        """Flushes and closes the file."""
        if not self._file.closed:
            self.flush()
            self._file.close()
