"""exclusion: did two clients believe, at the same time, that they hold one lock?  (P2.)

This is what a user wants to know.  A lock service can be right and this still fail: a client that
was paused past its TTL goes on believing.  The side says which it was: SERVICE if the two holds
also overlap in the service's view (double grant), else CLIENT.

Each overlap has two figures, with the clients' own deadline (invoke + TTL, where they keep one) and
without; and for a paused worker a third, from its first own event after it went on.

Readers may overlap readers, and as many as there are permits may be inside: only a writer beside
anybody, or one holder too many, counts (``checkers.sharing``).

Trap: the deadline counts only if ``context.enforced_deadline`` says that the client keeps it.
"""

from __future__ import annotations

from typing import Any

from checkers.models.base import BUSY
from checkers.monitors import holds, lease
from checkers.monitors.belief import Overlap, Window, naive_overlaps
from checkers.monitors.holds import Block
from checkers.monitors.span import NS_PER_MS, Span, Verdict, at_key, ms
from checkers.sharing import Sharing, reads
from checkers.view import View
from harness.core.history import History
from harness.core.limits import ANOMALIES_MAX
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result, Side, Valid


class Exclusion:
    """Real-time exclusion of believed windows."""

    name = "exclusion"
    safety = True

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        sharing = view.sharing
        believed = sum(len(found) for found in view.windows.values())
        if not believed:
            return Result(
                checker=self.name,
                valid=Valid.UNKNOWN,
                says="no client ever believed to hold a lock, so nothing was shown",
            )
        anomalies: list[Anomaly] = []
        pairs: list[Overlap] = []
        for key, found in view.windows.items():
            mine = sharing.overlaps(found, pauses=view.pauses)
            pairs += mine
            zones = _zones(view.judged[key], view) if mine else {}
            what = "session" if view.bound else "lease"
            anomalies += [_anomaly(pair, zones, what, sharing) for pair in mine]
        anomalies.sort(key=lambda anomaly: max(anomaly.ops))
        return Result(
            checker=self.name,
            valid=Valid.FALSE if anomalies else Valid.TRUE,
            says=_says(anomalies, believed, sharing),
            anomalies=anomalies[:ANOMALIES_MAX],
            stats=_figures(view, believed, pairs, anomalies),
        )


def _zones(spans: list[Span], view: View) -> dict[int, Block]:
    """The zone of each hold in the service's view, by the index of its acquire's invoke."""
    scratch = Verdict(model="zones")
    found: dict[int, Block] = {}
    for hold in holds.group([span for span in spans if span.seen != BUSY], scratch):
        run = lease.prepare(hold, view.ttl_ns, view.context.drift_ppm, scratch)
        if run is not None and hold.acquire is not None:
            found[hold.acquire.invoke] = run.block
    return found


def _anomaly(pair: Overlap, zones: dict[int, Block], what: str, sharing: Sharing) -> Anomaly:
    """what: the name of that with which a hold ends by itself."""
    first, second = pair.first, pair.second
    x, y = zones.get(first.acquire.invoke), zones.get(second.acquire.invoke)
    granted_twice = x is not None and y is not None and x.a < y.b and y.a < x.b
    if sharing.k > 1 and granted_twice and y is not None:
        granted_twice = sum(1 for z in zones.values() if z.a <= y.a < z.b) > sharing.k
    slept = pair.overlap_ns - pair.active_ns
    notes = []
    if slept:
        notes.append(f"{ms(pair.active_ns)} of them with both awake")
    if pair.naive_ns != pair.overlap_ns:
        notes.append(f"{ms(pair.naive_ns)} if clients did not keep their deadline")
    why = (
        ("more permits were out than there are" if sharing.k > 1 else "it had been granted to both")
        if granted_twice
        else f"the {what} of {first.acquire.who} was over by then, but it did not know"
        if x is None or x.end is None or second.start > x.b
        else f"{first.acquire.who} went on believing after its hold had ended"
    )
    return Anomaly(
        kind="believed-overlap",
        side=Side.SERVICE if granted_twice else Side.CLIENT,
        ops=list(dict.fromkeys(first.ops + second.ops)),
        says=at_key(first.acquire.key)
        + f"{first.acquire.who} ({_how(first, sharing)}since {ms(first.start)}) and "
        f"{second.acquire.who} ({_how(second, sharing)}since {ms(second.start)})"
        + (f" and {sharing.k - 1} more" if sharing.k > 1 else " both")
        + f" believed to hold it for {ms(pair.overlap_ns)}"
        + (f" ({', '.join(notes)})" if notes else "")
        + f": {why}",
        overlap_ns=pair.overlap_ns,
        key=first.acquire.key,
        legal_if=f"{first.acquire.who} had stopped believing by {ms(second.start)}",
    )


def _how(window: Window, sharing: Sharing) -> str:
    if not sharing.modes:
        return ""
    return "reading " if reads(window.acquire) else "writing "


def _says(anomalies: list[Anomaly], believed: int, sharing: Sharing) -> str:
    if not anomalies:
        if sharing.k > 1:
            return f"{believed} believed windows, never more than {sharing.k} of one key at once"
        others = ", but for readers" if sharing.modes else ""
        return f"{believed} believed windows, no two of one key overlap{others}"
    more = f" (and {len(anomalies) - 1} more)" if len(anomalies) > 1 else ""
    return anomalies[0].says + more


def _figures(
    view: View, believed: int, pairs: list[Overlap], anomalies: list[Anomaly]
) -> dict[str, Any]:
    longest = max((pair.overlap_ns for pair in pairs), default=0)
    stats: dict[str, Any] = {
        "exact": True,
        "why": "beliefs are read off the history",
        "believed_windows": believed,
        "overlaps": len(pairs),
        "overlaps_of_the_service": sum(1 for a in anomalies if a.side is Side.SERVICE),
        "overlap_ms_max": longest / NS_PER_MS,
        "awake_overlap_ms_max": max((pair.active_ns for pair in pairs), default=0) / NS_PER_MS,
        "deadline_enforced": view.context.enforced_deadline,
    }
    if not view.sharing.shared:
        stats["overlaps_without_deadline"] = sum(naive_overlaps(w) for w in view.windows.values())
    if view.leased:
        kept = view.windows if view.context.enforced_deadline else view.believed(enforced=True)
        stats["overlaps_with_deadline"] = sum(
            len(view.sharing.overlaps(found)) for found in kept.values()
        )
    return stats
