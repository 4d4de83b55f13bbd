"""Optional powers: what some nodes, workers and runtimes can do, found by ``isinstance``.

    if isinstance(node, Markable):
        node.leave_mark("here")

Trap: a power says that a machine can be asked, not that it will do it: one whose kind of server
knows no such thing raises HarnessError, and a fault refuses it before anything starts.
``protocols`` has all of these names too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from harness.core.undo import Step

if TYPE_CHECKING:
    from harness.core.protocols import Link


@runtime_checkable
class Markable(Protocol):
    """Optional power of a node: a mark among its data proves whether a restart kept them."""

    def leave_mark(self, mark: str) -> None:
        """Stores ``mark``; returns when it is as durable as any other acknowledged write."""

    def has_mark(self, mark: str) -> bool: ...


@runtime_checkable
class OwnDisk(Protocol):
    """Optional power of a node: a mark beside its data, which no other server can give back.

    replicated: lost data come back from the others, so that only such a mark proves a loss.
    """

    @property
    def replicated(self) -> bool: ...

    def leave_own_mark(self, mark: str) -> None: ...

    def has_own_mark(self, mark: str) -> bool: ...


@runtime_checkable
class Voting(Protocol):
    """Optional power of a node: it says whether it is one of those whose majority decides."""

    votes: bool


@runtime_checkable
class Commandable(Protocol):
    """Optional power of a node: it carries out commands of its own tongue, past every proxy."""

    def command(self, *words: str) -> str:
        """The reply, an array as lines; AnsweredError if the server answers with an error,
        HarnessError if it does not answer."""

    def undo_command(self, *words: str) -> Sequence[Step]:
        """Steps that carry the command out from any process, on this start of the server only."""


@runtime_checkable
class Promotable(Protocol):
    """Optional power of a node: a replica can be made a primary, whatever the old one thinks."""

    def promote(self) -> None:
        """Returns when it is the primary; HarnessError if it is no replica or does not become it.

        Its facts then say so: ``role`` and a higher ``term``; ``lsn`` (how much log it has) tells
        who is behind."""


@runtime_checkable
class Unreachable(Protocol):
    """Optional power of a node: packets to and from it can be swallowed without a word, as by a
    firewall that drops or a host that is gone."""

    def swallow(self) -> None:
        """From now on; HarnessError if its network cannot be got at."""

    def swallowed(self) -> int:
        """Packets swallowed so far; 0 if none are (any more)."""

    def deliver(self) -> None:
        """No more; nothing happens if none were swallowed."""

    def undo_swallow(self) -> Sequence[Step]: ...


class ClockReading(msgspec.Struct, frozen=True):
    """How far a machine's wall clock is ahead of ours, give or take ``error_ns``; ``reads``: how
    often its process was told a skewed time so far (None: not counted)."""

    offset_ns: int
    error_ns: int
    reads: int | None = None


@runtime_checkable
class Skewable(Protocol):
    """Optional power of a node or worker: its wall clock can be set apart from the machine's;
    its monotonic clock never."""

    def set_clock(self, *, offset_ns: int, rate_ppm: int) -> None:
        """From now on ahead by ``offset_ns``, growing by ``rate_ppm``; zeros: the true time.
        HarnessError if it was started without the means."""

    def clock_reading(self) -> ClockReading:
        """What its clock says now, asked and not remembered; HarnessError if it cannot tell."""

    def undo_clock(self) -> Sequence[Step]:
        """Steps that give it the true time from any process."""


@runtime_checkable
class Blockable(Protocol):
    """Optional power of a worker: its main thread can be blocked while other threads run on."""

    def block(self) -> None:
        """HarnessError if the worker does not take the signal."""

    def unblock(self) -> None:
        """Nothing happens if it is not blocked."""

    def is_blocked(self) -> bool:
        """As the worker itself shows it."""

    def undo_block(self) -> Sequence[Step]: ...


@runtime_checkable
class ClockShimmed(Protocol):
    """Optional power of a runtime: its servers start with a clock shim (core/skew.py) if it is
    given one before ``up``."""

    clock_shim: Path | None


@runtime_checkable
class Sessional(Protocol):
    """Optional power of a node: it tells and ends the connections that came through a link.

    Clients make that possible by naming their connections ``session_name(port of the link)``.
    """

    def sessions(self, link: Link) -> Sequence[str]:
        """The server's own ids of open connections through ``link``."""

    def end_session(self, link: Link, identity: str) -> None:
        """Ends one of them; nothing happens if it is gone."""


@runtime_checkable
class SessionKeeping(Protocol):
    """Optional power of a ``Sessional`` node: its sessions outlive their connections."""

    def has_session(self, identity: str) -> bool:
        """Does the service still know that session, connected or not."""


def session_name(port: int) -> str:
    """Name that a client gives its connections to the endpoint at ``port``."""
    return f"lockhavoc-{port}"
