"""errors: are busy, lost and unreachable told apart?  (K23.)

    answer-from-nowhere   a client that could reach no server all the while was told "busy" or
                          "not-held", or even that all went well

Who takes an outage for contention waits, retries or gives up for the wrong reason; who takes it for
a loss abandons a lock that it still has.

Only operations are looked at that lie wholly within a time in which every server was surely cut
off from the client: killed, stopped, or its link closed or stuck, from when that was proven to when
the heal began.

Traps.  ``context.servers`` must name all servers that clients talk to, else nothing is shown.  A
plain failure and an unknown outcome are honest answers both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, RELEASE, RENEW
from checkers.monitors.span import Span, at_key, ms
from checkers.outcome import ruled, unapplied
from checkers.view import View
from harness.core.history import History
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result, Side

ON_SERVERS = frozenset({"node-kill", "node-pause"})
ON_LINKS = frozenset({"sever", "jam", "blackhole"})


class Cut(msgspec.Struct, gc=False, frozen=True):
    """A time (open at both ends) in which a worker reached no server at all."""

    start: int
    end: int
    why: str


class Errors:
    """Answers of servers that nobody could reach."""

    name = "errors"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        cuts: dict[int, list[Cut]] = {}
        judged, anomalies = 0, []
        for spans in view.locks.values():
            for span in spans:
                worker = view.worker(span.process)
                if span.f not in (ACQUIRE, RELEASE, RENEW) or worker is None or span.info:
                    continue
                if worker not in cuts:
                    cuts[worker] = list(_cuts(worker, context))
                cut = next(
                    (c for c in cuts[worker] if c.start < span.call and span.ret < c.end), None
                )
                if cut is None:
                    continue
                judged += 1
                if span.ok or span.seen != "fail":
                    anomalies.append(_anomaly(span, cut))
        stats: dict[str, Any] = {
            "exact": True,
            "why": "cuts are proven by the evidence of the faults",
            "judged": judged,
            "cuts": sum(len(found) for found in cuts.values()),
            "violations": len(anomalies),
        }
        if not judged:
            says = "no operation began and ended while its client was cut off from every server"
            return unapplied(self, says, stats)
        anomalies.sort(key=lambda anomaly: anomaly.ops[-1])
        says = (
            f"{judged} operations of clients that were cut off, none with an answer that only "
            "a server can give"
        )
        return ruled(self, says, stats, anomalies)


def _cuts(worker: int, context: CheckContext) -> Iterator[Cut]:
    """When ``worker`` reached no server; one per choice of faults that cut each of them."""
    times: list[tuple[int, int, str]] | None = None
    for server in context.servers:
        mine = [
            (fault.on_ns, fault.off_ns, fault.kind)
            for fault in context.faults
            if fault.bit
            and fault.on_ns is not None
            and fault.off_ns is not None
            and (
                (fault.kind in ON_SERVERS and server in fault.targets)
                or (fault.kind in ON_LINKS and f"w{worker}-{server}" in fault.targets)
            )
        ]
        if times is None:
            times = mine
            continue
        times = [
            (max(a, c), min(b, d), kind)
            for a, b, kind in times
            for c, d, _ in mine
            if max(a, c) < min(b, d)
        ]
    yield from (Cut(start, end, kind) for start, end, kind in times or ())


def _anomaly(span: Span, cut: Cut) -> Anomaly:
    answer = "ok" if span.ok else str(span.seen)
    return Anomaly(
        kind="answer-from-nowhere",
        side=Side.CLIENT,
        ops=[span.invoke, span.event],
        says=at_key(span.key)
        + f"the {span.f} of {span.who} ({ms(span.call)} to {ms(span.ret)}) was answered "
        f"{answer!r}, but from {ms(cut.start)} to {ms(cut.end)} it reached no server ({cut.why})",
        key=span.key,
        legal_if="it had failed, or its outcome had been left open",
    )
