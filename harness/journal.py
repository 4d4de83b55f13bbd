"""The history of a run as it grows, line by line, on disk.

Lines are written in the order in which the harness learns of events, with the harness' own times.
They are flushed at least every 100 ms, so a crash loses no more than that, and ``check`` can
read what is there.  ``harness.stamps`` makes the final history from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from harness.core.clock import NS_PER_MS
from harness.core.errors import HarnessError
from harness.core.history import NEMESIS, Header, Op, Type
from harness.core.messages import Reply
from harness.generator import Step

FILE = "history.jsonl"
FLUSH_EVERY_NS = 100 * NS_PER_MS
FLUSH_LINES_MAX = 2000
REPLY_FIELDS = frozenset({"token", "seq", "version", "value"})  # the rest of a reply stays out
_INVOKE = str(Type.INVOKE)  # a member of an enumeration takes four times as long to look up


class Journal:
    """Appends events to ``history.jsonl`` and keeps them in memory for the analysis."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.header = header
        self.ops: list[Op] = []
        self._encoder = msgspec.json.Encoder()
        self._written = 0
        self._due_ns = 0
        self._file: BinaryIO = path.open("wb")
        self._file.write(self._encoder.encode(header) + b"\n")
        self._file.flush()

    def invoke(self, time_ns: int, process: int, f: str, key: str, value: dict[str, Any]) -> None:
        """An operation was handed to a worker."""
        ops = self.ops
        ops.append(Op(len(ops), time_ns, process, _INVOKE, f, key, value))

    def complete(
        self, time_ns: int, process: int, step: Step, reply: Reply, *, sent_ns: int, start_ns: int
    ) -> None:
        """An operation ended.  The worker's own stamps go to ``extra`` if they say more."""
        value: dict[str, Any] = {"hold": step.hold}
        given = reply.value
        if isinstance(given, dict):
            for name, found in given.items():
                if name in REPLY_FIELDS and found is not None:
                    value[name] = found
        ops = self.ops
        op = Op(len(ops), time_ns, process, reply.type, step.do, step.key, value, reply.error)
        if reply.invoke and (
            reply.invoke - start_ns != sent_ns or reply.complete - start_ns != time_ns
        ):
            op.extra = {"invoke": reply.invoke - start_ns, "complete": reply.complete - start_ns}
        ops.append(op)

    def lost(self, time_ns: int, process: int, reply: Reply) -> None:
        """The library told its user that a lock was lost."""
        value = {"hold": reply.hold, "process": process}
        self.ops.append(Op(len(self.ops), time_ns, NEMESIS, Type.INFO, "lost", reply.key, value))

    def nemesis(self, time_ns: int, f: str, value: dict[str, Any]) -> None:
        """Something the nemesis did."""
        self.ops.append(Op(len(self.ops), time_ns, NEMESIS, Type.INFO, f, None, value))

    def flush_if_due(self, now_ns: int) -> None:
        """Flushes when the last time is long enough ago, or when much has come since."""
        waiting = len(self.ops) - self._written
        if waiting and (now_ns >= self._due_ns or waiting >= FLUSH_LINES_MAX):
            self.flush()
            self._due_ns = now_ns + FLUSH_EVERY_NS

    def flush(self) -> None:
        """Hands everything to the operating system."""
        try:
            self._file.write(self._encoder.encode_lines(self.ops[self._written :]))
            self._file.flush()
        except OSError as error:
            raise HarnessError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._written = len(self.ops)

    def close(self) -> None:
        """Flushes and closes the file."""
        if not self._file.closed:
            self.flush()
            self._file.close()
