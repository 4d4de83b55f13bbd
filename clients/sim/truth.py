"""What really happened at the simulated server, for tests of locks without any checker.

    truth = Truth()
    ... run ...
    truth.double_grants()     # [("0-3", "1-7"), ...]: two unexpired grants of one lock at once

A hold lives from the instant at which the server carried out the command that granted it, to its
own release (as it was asked for) or the end of its lease, counted from the command that granted or
last renewed it.  Nobody but the holder may shorten that.

Traps: grants whose answer got lost are not in here, so this finds less than the checkers, never
more.  Commands are one instant each, so touching is no overlap.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.core.clock import NS_PER_MS
from harness.core.messages import Request

FOR_EVER_NS = 1 << 62


class TrueHold(msgspec.Struct, gc=False):
    """One granted hold; ``end_ns`` is the earliest instant at which another may be granted."""

    key: str
    hold: str
    start_ns: int
    end_ns: int
    token: int | None
    released: bool = False


class Truth:
    """All confirmed holds of a simulated run.  lease: as in ``Recipe.lease``."""

    def __init__(self, lease: str) -> None:
        self.holds: dict[str, TrueHold] = {}
        self._lease = lease

    def succeeded(self, request: Request, result: Any, served_ns: int) -> None:
        """An operation that ended ok; its last command was carried out at ``served_ns``."""
        hold = request.hold or ""
        if request.do == "acquire":
            self.holds[hold] = TrueHold(
                request.key or "", hold, served_ns, self._end_ns(request, served_ns), result.token
            )
        elif request.do == "renew":
            known = self.holds[hold]
            known.end_ns = max(known.end_ns, self._end_ns(request, served_ns))

    def released(self, hold: str, asked_ns: int) -> None:
        """The holder asked for its release at ``asked_ns``: from then on others may have it."""
        known = self.holds.get(hold)
        if known is not None and not known.released:
            known.released = True
            known.end_ns = min(known.end_ns, asked_ns)

    def double_grants(self) -> list[tuple[str, str]]:
        """Pairs of holds of one key that the server granted at once, by start."""
        pairs = []
        latest: dict[str, TrueHold] = {}
        for hold in sorted(self.holds.values(), key=lambda h: (h.start_ns, h.hold)):
            before = latest.get(hold.key)
            if before is not None and hold.start_ns < before.end_ns:
                pairs.append((before.hold, hold.hold))
            if before is None or hold.end_ns >= before.end_ns:
                latest[hold.key] = hold
        return pairs

    def token_inversions(self) -> list[tuple[str, str]]:
        """Neighbouring grants of one key whose tokens do not grow."""
        pairs = []
        latest: dict[str, TrueHold] = {}
        for hold in sorted(self.holds.values(), key=lambda h: (h.start_ns, h.hold)):
            before = latest.get(hold.key)
            if before is not None and (hold.token or 0) <= (before.token or 0):
                pairs.append((before.hold, hold.hold))
            latest[hold.key] = hold
        return pairs

    def last_grant_ns(self) -> int:
        """Instant of the latest grant, 0 if there was none."""
        return max((hold.start_ns for hold in self.holds.values()), default=0)

    def _end_ns(self, request: Request, served_ns: int) -> int:
        if self._lease == "none" or request.ttl_ms is None:
            return FOR_EVER_NS
        return served_ns + request.ttl_ms * NS_PER_MS
