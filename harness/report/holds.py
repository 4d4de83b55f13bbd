"""Every hold of a run as a bar: when it was asked for, believed, and covered by its lease.

    for bar in bars(view): ...     # sorted by the time of the grant

A hold has two lives.  Its worker *believes* from the answer of the acquire until it lets go.  The
service *grants* from about then until the release or the end of the lease; when exactly, nobody
outside knows, so there are two ends: ``lease_sure_ns``, before which it surely had not ended, and
``lease_last_ns``, after which it surely had.  A belief that outlasts ``lease_last_ns`` is what
breaks.

Trap: a grant of unknown outcome has a lease (if something confirmed it) but no belief.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkers.fencing import rank_holds
from checkers.models.base import ACQUIRE, RELEASE, RENEW
from checkers.monitors.belief import Window
from checkers.monitors.holds import Block
from checkers.monitors.span import INF, Span, Verdict
from checkers.sharing import reads
from checkers.view import View


class Bar(msgspec.Struct, gc=False, kw_only=True):
    """One hold.  Times in ns since the start of the run; those of the lease are None if nothing is
    known of it, ``lease_last_ns`` is None also if the lease never ends by itself.

    why: what ended the belief.  rank: place in the order of the holds of its lock.
    """

    process: int | str
    key: str | None
    hold: Any
    token: int | None
    asked_ns: int
    granted_ns: int
    believed_ns: int | None  # end of the belief, None if it never believed
    why: str = ""
    lease_from_ns: int | None = None
    lease_sure_ns: int | None = None
    lease_last_ns: int | None = None
    rank: int | None = None
    reads: bool = False  # it shares the lock with other readers


def bars(view: View) -> list[Bar]:
    """The bars of all holds that were granted or confirmed, by time of the grant."""
    end_ns = view.history.end_ns
    zones = rank_holds(view, Verdict(model="zones"))
    found: list[Bar] = []
    believed: set[Any] = set()
    for key, windows in view.windows.items():
        for window in windows:
            bar = _believed(key, window)
            if window.hold is not None:
                believed.add(window.hold)
                _lease(bar, zones.get(window.hold), view.ttl_ns, end_ns)
            found.append(bar)
    for hold, zone in zones.items():
        if hold not in believed:
            found.append(_confirmed(hold, zone, view.ttl_ns, end_ns))
    found.sort(key=lambda bar: (bar.granted_ns, bar.asked_ns))
    return found


def _believed(key: str | None, window: Window) -> Bar:
    return Bar(
        process=window.process,
        key=key,
        hold=window.hold,
        token=window.token,
        asked_ns=window.acquire.call,
        granted_ns=window.start,
        believed_ns=window.end,
        why=window.why,
        reads=reads(window.acquire),
    )


def _confirmed(hold: Any, zone: tuple[int, Block], ttl_ns: int | None, end_ns: int) -> Bar:
    start = zone[1].start
    acquire = zone[1].hold.acquire or start
    bar = Bar(
        process=start.process,
        key=start.key,
        hold=hold,
        token=start.token,
        asked_ns=acquire.call,
        granted_ns=min(start.ret, end_ns),
        believed_ns=None,
        reads=reads(acquire),
    )
    _lease(bar, zone, ttl_ns, end_ns)
    return bar


def _lease(bar: Bar, zone: tuple[int, Block] | None, ttl_ns: int | None, end_ns: int) -> None:
    if zone is None:
        return
    bar.rank, block = zone
    bar.lease_from_ns = min(block.a, end_ns)
    bar.lease_sure_ns = max(bar.lease_from_ns, block.b) if block.b < INF else end_ns
    bar.lease_last_ns = _latest(block, ttl_ns)


def _latest(block: Block, ttl_ns: int | None) -> int | None:
    """When the lease had surely ended: its release was answered, or the TTL over since the last
    answered refresh."""
    ops: list[Span] = [*([block.hold.acquire] if block.hold.acquire else []), *block.hold.rest]
    released = [span.ret for span in ops if span.f == RELEASE and span.ok]
    if released:
        return min(released)
    own = next((span.ttl for span in ops if span.f == ACQUIRE and span.ttl is not None), ttl_ns)
    if own is None:
        return None
    # An answer that never came may still have refreshed it, at any time.
    if any(span.f in (ACQUIRE, RENEW) and span.info for span in ops):
        return None
    refreshed = [span for span in ops if span.f in (ACQUIRE, RENEW) and span.ok]
    if not refreshed:
        return None
    last = max(refreshed, key=lambda span: span.ret)
    return last.ret + (last.ttl if last.ttl is not None else own)
