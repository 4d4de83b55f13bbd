"""Records of the online monitors: lean lines, and what is remembered per hold, lock and resource.

Traps: these are made by the million, so they have slots and no methods to speak of, and
``gc=False`` where nothing can point back.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

import msgspec

from checkers.monitors.span import INF

RECENT_MAX = 64  # grants of a key among which bypasses are counted
MARKS_MAX = 1024  # writes that may be accepted while another is under way
GAPS_MAX = 64  # places for tokens of unknown grants that kept per lock


class Value(msgspec.Struct, gc=False, frozen=True):
    """The fields of a value object that lock monitors read."""

    hold: str | int | None = None
    token: int | str | None = None
    owner: str | int | None = None
    ttl_ns: int | None = None
    process: int | str | None = None  # whom a signal of loss is for


NOTHING = Value()


class Line(msgspec.Struct, gc=False):
    """One event."""

    index: int
    time: int
    process: int | str
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    key: str | None = None
    value: Value = NOTHING
    error: str | None = None


class OddLine(msgspec.Struct, gc=False):
    """An event whose value is not an object, as a read's or a CAS'; it says nothing to locks."""

    index: int
    time: int
    process: int | str
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    key: str | None = None
    value: Value | list[Any] | str | float | int | bool | None = None
    error: str | None = None

    def line(self) -> Line:
        value = self.value if isinstance(self.value, Value) else NOTHING
        return Line(
            self.index, self.time, self.process, self.type, self.f, self.key, value, self.error
        )


Grant = tuple[Line, Line]  # invoke and completion of an acquire


class Hold(msgspec.Struct, gc=False):
    """A granted hold.  call, a: of its acquire; b: call of its release (INF: none).  sure: nothing
    can change it any more.  refused: when it was told "not held" (-1: never).  refreshed: call of
    the last grant or renew; deadline: until when its client trusts its lease.

    Of its renews count the answer of the first (``renewed``, INF: none) and call and answer of the
    last (``refreshed``, ``touched``): they come one after the other, see ``earliest``."""

    name: Any
    process: int | str
    lock: Any
    call: int
    a: int
    event: int
    token: int | None
    refreshed: int
    lasts: int = INF
    trusted: int = INF
    deadline: int = INF
    b: int = INF
    believed: int = INF
    released: bool = False
    asked: bool = False
    sure: bool = False
    refused: int = -1
    closer: int = -1
    renewed: int = INF
    touched: int = -1
    taker: Any = None

    @property
    def belief_end(self) -> int:
        """Until when its process believes, as far as is known now (INF: it still does)."""
        return self.believed if self.believed < self.deadline else self.deadline

    @property
    def zone_end(self) -> int:
        """Until when it surely held: call of its release, or the earliest end of its lease."""
        if self.released:
            return self.b
        return min(self.b, self.refreshed + self.lasts)


class Moment:
    """A hold whose grant is unknown and whose release is confirmed: an instant in [low, high]."""

    __slots__ = ("ask", "event", "high", "low", "name", "placed", "process", "spent")

    def __init__(
        self, name: Any, process: int | str, low: int, high: int, ask: int, event: int
    ) -> None:
        self.name, self.process, self.low, self.high = name, process, low, high
        self.ask, self.event = ask, event
        self.placed = self.spent = False


class Lock:
    """One key of the lock service.  reach: greatest b so far; free: from when the lease allows the
    next; token: greatest so far; believed: greatest end of a window; ``*_by``: whose.

    Most holds never meet another, so they stay what they were read as until somebody comes close:
    fresh is a grant (with its invoke) that no queue has seen, ``latest`` a hold that was released
    by ``closer`` and stands for all of reach, free, believed and ``*_by`` (``Judge.unfold``)."""

    __slots__ = (
        "believed",
        "believer",
        "believers",
        "clear",
        "closer",
        "free",
        "free_by",
        "fresh",
        "gaps",
        "gone",
        "key",
        "last_a",
        "last_call",
        "latest",
        "moments",
        "queue",
        "reach",
        "reach_by",
        "recent",
        "token",
        "token_by",
    )

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.queue: deque[Hold] = deque()
        self.moments: list[Moment] = []
        self.reach = self.free = self.believed = self.last_a = self.last_call = -INF
        self.clear = INF  # from when a hold needs no judging; INF: it does
        self.fresh: Grant | None = None  # only while the queue is empty
        self.latest: Hold | Grant | None = None
        self.closer: Line | None = None
        self.recent: deque[tuple[int, int]] = deque(maxlen=RECENT_MAX)  # call, a; but the last
        self.reach_by: Hold | None = None
        self.free_by: Hold | None = None
        self.believer: Hold | None = None  # the one of the ended windows that ended last
        self.believers: list[Hold] = []  # judged, and perhaps still believing
        self.token: int | None = None
        self.token_by: Hold | None = None
        self.gaps: deque[list[int]] = deque()  # [when it closes, tokens left in it]
        self.gone = -INF  # when the last gap that was forgotten closed

    def add_gap(self, a: int, token: int) -> None:
        """The gap before the grant with ``token``, which closes at ``a``."""
        room = INF if self.token is None else token - self.token - 1
        if room > 0:
            self.gaps.append([a, room])
            if len(self.gaps) > GAPS_MAX:
                self.gone = self.gaps.popleft()[0]

    def spend(self, moment: Moment) -> bool:
        """Takes a token for an unknown grant from the first gap that it fits in."""
        for gap in self.gaps:
            if gap[0] >= moment.low and gap[1] > 0:
                gap[1] -= 1
                return True
        return False


class Resource:
    """One resource.  greatest: token accepted so far, by the event greatest_by; at, index: of the
    last write that was accepted; marks: what these four were before writes that may still matter.
    """

    __slots__ = ("at", "greatest", "greatest_by", "index", "key", "marks")

    def __init__(self, key: str | None) -> None:
        self.key = key
        self.greatest = -INF
        self.greatest_by = self.at = self.index = -1
        self.marks: deque[tuple[int, int, int, int]] = deque(maxlen=MARKS_MAX)

    def before(self, index: int) -> tuple[int, int, int] | None:
        """(at, greatest, greatest_by) as they stood at the event ``index``; None if forgotten."""
        if self.index < index:
            return self.at, self.greatest, self.greatest_by
        for accepted, at, greatest, by in reversed(self.marks):
            if accepted < index:
                return at, greatest, by
        return None
