"""What nodes of both runtimes share: an address, a family that speaks to it, perhaps a clock.

``DockerNode`` and ``ProcessNode`` add how the machine is paused, killed and started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compose.families.base import Family
from harness.core.errors import HarnessError
from harness.core.protocols import ClockReading, Link, Probe, session_name
from harness.core.skew import SkewFile
from harness.core.undo import Step


class ServerNode:
    """A server at host:port, past every proxy; see ``protocols.Node`` and the optional powers."""

    host = "127.0.0.1"
    votes = True  # the runtime knows better (``NodeSpec.votes``)

    def __init__(self, name: str, family: Family, *, port: int, clock: SkewFile | None) -> None:
        self.name, self.family, self.port = name, family, port
        self.role = ""
        self._clock = clock

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.host}:{self.port})"

    def probe(self, timeout_ms: int) -> Probe:
        return self.family.probe(self.host, self.port, timeout_ms)

    def facts(self) -> Mapping[str, Any]:
        return self.family.facts(self.host, self.port)

    def leave_mark(self, mark: str) -> None:
        self.family.leave_mark(self.host, self.port, mark)

    def has_mark(self, mark: str) -> bool:
        return self.family.has_mark(self.host, self.port, mark)

    def command(self, *words: str) -> str:
        return self.family.command(self.host, self.port, words)

    def undo_command(self, *words: str) -> Sequence[Step]:
        return self.family.undo_command(self.host, self.port, words)

    def sessions(self, link: Link) -> Sequence[str]:
        return self.family.sessions(self.host, self.port, session_name(link.port))

    def end_session(self, link: Link, identity: str) -> None:
        self.family.end_session(self.host, self.port, identity)

    def promote(self) -> None:
        self.family.promote(self.host, self.port)

    def has_session(self, identity: str) -> bool:
        return self.family.has_session(self.host, self.port, identity)

    def set_clock(self, *, offset_ns: int, rate_ppm: int) -> None:
        self._skew().set(offset_ns=offset_ns, rate_ppm=rate_ppm)

    def clock_reading(self) -> ClockReading:
        told = self.family.clock(self.host, self.port)
        return ClockReading(told.offset_ns, told.error_ns, self._skew().reads())

    def undo_clock(self) -> Sequence[Step]:
        return self._skew().undo()

    def _skew(self) -> SkewFile:
        if self._clock is None:
            raise HarnessError(
                f"node {self.name} was started without the clock shim: its clock is the machine's"
            )
        return self._clock
