"""Operations and histories: what happened, in the words of Jepsen.

A worker *invokes* an operation and it ends in one of three ways: ``ok`` (it happened, at one point
between invoke and completion), ``fail`` (it surely did not), ``info`` (nobody knows: it may take
effect at any later time, or never).  An operation with no completion counts as ``info``.

    {"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"k0","value":{"hold":"0-1"}}
    {"index":1,"time":900,"process":0,"type":"ok","f":"acquire","key":"k0",
     "value":{"hold":"0-1","token":1}}

Traps: intervals are closed at both ends, so equal times are concurrent; a ``fail`` says nothing
about the state unless ``error`` is one of OBSERVATIONS; an acquire that raised may still hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Protocol

import msgspec

SCHEMA = "lockhavoc/history/1"
NEMESIS = "nemesis"

# A refusal that *observed* the state (busy: somebody holds it; not-held: the caller does not;
# mismatch: compare failed; stale: the resource has seen a greater token).
OBSERVATIONS = frozenset({"busy", "not-held", "mismatch", "stale"})


class Type(StrEnum):
    """How an event stands in its operation."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Op(msgspec.Struct, omit_defaults=True, gc=False, kw_only=False):
    """One event: an invoke or a completion.

    time: ns since the start of the run.  process: a logical client (int) or "nemesis"; a new
    number is used after an unknown outcome.  f: acquire | release | renew | write | read | cas and
    fault names.  key: lock or resource key; keys are independent.  value: for lock operations an
    object with ``hold`` (fresh per acquire attempt), ``owner``, ``token``, ``ttl_ns``.
    error: a word of OBSERVATIONS or a message.  extra: facts that no checker needs to judge.
    """

    index: int
    time: int
    process: int | str
    type: str
    f: str
    key: str | None = None
    value: Any = None
    error: str | None = None
    extra: dict[str, Any] = {}


class Header(msgspec.Struct, kw_only=True):
    """First line of a history file; its ``schema`` is what tells it from an operation."""

    schema: str = SCHEMA
    name: str = ""
    seed: int | None = None
    scenario: str | None = None
    versions: dict[str, str] = {}
    ttl_ns: int | None = None
    k: int | None = None
    initial: Any = None


class Interval(msgspec.Struct, frozen=True):
    """An operation: its invoke and its completion.  ``complete`` is None if there was none."""

    invoke: Op
    complete: Op | None

    @property
    def outcome(self) -> str:
        """ok | fail | info (no completion counts as info)."""
        return Type.INFO if self.complete is None else self.complete.type

    @property
    def call_ns(self) -> int:
        return self.invoke.time

    @property
    def return_ns(self) -> int | None:
        """End of the interval, or None if it is open to the right (info, or never completed)."""
        if self.complete is None or self.complete.type == Type.INFO:
            return None
        return self.complete.time

    def field(self, name: str) -> Any:
        """A field of the completion's value object, else of the invoke's, else None."""
        for op in (self.complete, self.invoke):
            if op is not None and isinstance(op.value, dict) and name in op.value:
                return op.value[name]
        return None


class LineNumbers(Protocol):
    """Line in the file (from 1) of the event at a position of the history (from 0)."""

    def __getitem__(self, position: int, /) -> int: ...


class History:
    """A list of events with its header.  ``torn``: the last line of the file was incomplete.

    ``lines`` is set by the readers of text files, so that a message can name the line of an
    event: ``line(position)``.
    """

    def __init__(
        self, ops: Iterable[Op], header: Header | None = None, *, torn: bool = False
    ) -> None:
        self.ops = list(ops)
        self.header = header or Header()
        self.torn = torn
        self.lines: LineNumbers | None = None
        self._intervals: list[Interval] | None = None

    def __len__(self) -> int:
        return len(self.ops)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def line(self, position: int) -> int | None:
        """Line of the file on which the event at ``position`` stands, None if not from a file."""
        return None if self.lines is None else self.lines[position]

    def intervals(self) -> list[Interval]:
        """Client operations as intervals, in order of invocation (cached; nemesis left out)."""
        if self._intervals is None:
            self._intervals = pair(self.ops)
        return self._intervals

    def nemesis(self) -> list[Op]:
        """Events of the nemesis, in order."""
        return [op for op in self.ops if op.process == NEMESIS]

    @property
    def end_ns(self) -> int:
        """Time of the last event (0 for an empty history)."""
        return self.ops[-1].time if self.ops else 0


def pair(ops: Iterable[Op]) -> list[Interval]:
    """Pairs each client invoke with its completion, in order of invocation.

    An invoke while the process' last operation has no completion leaves that one open for ever.
    A completion without a pending invoke is ignored here; ``checkers`` names it as malformed.
    """
    found: list[tuple[Op, Op | None]] = []
    pending: dict[int | str, int] = {}
    for op in ops:
        if op.process == NEMESIS:
            continue
        if op.type == Type.INVOKE:
            pending[op.process] = len(found)
            found.append((op, None))
        else:
            slot = pending.pop(op.process, None)
            if slot is not None:
                found[slot] = (found[slot][0], op)
    return [Interval(invoke, complete) for invoke, complete in found]
