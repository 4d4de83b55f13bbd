"""honesty: was a release or a renewal answered ok although the lock was somebody else's?

    answered-ok-without-lock   all through the operation another hold was surely the lock's
    answered-ok-twice          a hold that had been released was released or renewed again

Who answers so either changes a lock that is not the caller's (a plain DEL or EXPIRE takes it from
its holder), or says yes without having looked; both hide that the lock was lost.

Another hold is sure from its grant's answer to the call of its last renewal or release that was
answered ok: who has lost a lock never gets it back under the same hold.  A lease proves nothing
here, since a server that restarts or is emptied ends it early.

Traps.  A refusal is never dishonest here: a server that forgot the lock refuses rightly, and
``lease`` judges the forgetting.  An "ok" is: of two owners who are both answered so, one was told
wrong.  Where a client renews a lease without a look at the lock's key, or takes a key that is gone
for one that it removed, that comes with every lost key; a history cannot say which of the two was
wrong, so each may be named.  Permits and read locks are shared, so nobody is alone there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, RELEASE, RENEW
from checkers.monitors.span import Span, at_key, ms
from checkers.outcome import ruled, unapplied
from checkers.view import View
from harness.core.history import History
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result, Side


class Sure(msgspec.Struct, gc=False, frozen=True):
    """A hold was surely there between ``start`` and ``end`` (touching is concurrent)."""

    hold: Any
    start: int
    end: int
    acquire: Span
    witness: Span  # the answer that confirms it up to its end


class Honesty:
    """Answers of release and renewal against who had the lock."""

    name = "honesty"
    safety = True

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        shared = view.sharing.shared
        answers = [
            span
            for spans in view.locks.values()
            for span in spans
            if span.f in (RELEASE, RENEW) and span.ok and span.hold is not None
        ]
        if shared or not answers:
            says = "no release and no renewal of a known hold was answered ok"
            if shared:
                says = "several may hold this lock at once"
            return unapplied(self, says, {})
        anomalies: list[Anomaly] = []
        for spans in view.locks.values():
            anomalies += _judge(spans)
        anomalies.sort(key=lambda anomaly: max(anomaly.ops))
        stats = {
            "exact": True,
            "why": "sure holds are read off the history",
            "answers": len(answers),
            "violations": len(anomalies),
        }
        says = (
            f"{len(answers)} releases and renewals were answered ok, none against another's "
            "sure hold"
        )
        return ruled(self, says, stats, anomalies)


def _judge(spans: list[Span]) -> list[Anomaly]:
    waiting = sorted(sure_holds(spans), key=lambda hold: -hold.start)
    alive: list[Sure] = []
    released: dict[Any, Span] = {}  # hold -> its release that was answered first
    found = []
    for span in sorted(spans, key=lambda span: (span.call, span.invoke)):
        if span.f not in (RELEASE, RENEW) or not span.ok or span.hold is None:
            continue
        before = released.get(span.hold)
        if before is not None and before.ret < span.call:
            found.append(_twice(span, before))
        if span.f == RELEASE and (before is None or span.ret < before.ret):
            released[span.hold] = span
        while waiting and waiting[-1].start < span.call:
            alive.append(waiting.pop())
        alive = [hold for hold in alive if hold.end > span.call]
        owner = next((s for s in alive if s.hold != span.hold and s.end > span.ret), None)
        if owner is not None:
            found.append(_without_lock(span, owner))
    return found


def sure_holds(spans: list[Span]) -> list[Sure]:
    """For each granted hold of one key the time in which it was surely there, if there is any."""
    mine: dict[Any, list[Span]] = {}
    for span in spans:
        if span.hold is not None:
            mine.setdefault(span.hold, []).append(span)
    found = []
    for hold, ops in mine.items():
        acquire = next((span for span in ops if span.f == ACQUIRE and span.ok), None)
        let_go = next((span.call for span in ops if span.f == RELEASE), None)
        confirming = [
            span
            for span in ops
            if span.f in (RENEW, RELEASE) and span.ok and (let_go is None or span.call <= let_go)
        ]
        if acquire is None or not confirming:
            continue
        last = max(confirming, key=lambda span: span.call)
        if last.call > acquire.ret:
            found.append(Sure(hold, acquire.ret, last.call, acquire, last))
    return found


def _without_lock(span: Span, owner: Sure) -> Anomaly:
    other, witness = owner.acquire.who, owner.witness
    return Anomaly(
        kind="answered-ok-without-lock",
        side=Side.SERVICE,
        ops=list(dict.fromkeys([owner.acquire.event, span.invoke, span.event, witness.event])),
        says=at_key(span.key)
        + f"the {span.f} of {span.who} ({ms(span.call)} to {ms(span.ret)}) was answered ok, while "
        f"the lock was {other}'s, granted at {ms(owner.start)} and confirmed by the {witness.f} "
        f"at {ms(owner.end)}, which was answered ok, too",
        key=span.key,
        legal_if=f"one of the two had been refused: it, or the {witness.f} of {witness.who} at "
        f"{ms(owner.end)}",
    )


def _twice(span: Span, before: Span) -> Anomaly:
    return Anomaly(
        kind="answered-ok-twice",
        side=Side.SERVICE,
        ops=[before.event, span.invoke, span.event],
        says=at_key(span.key)
        + f"the {span.f} of {span.who} at {ms(span.call)} was answered ok, but that hold had been "
        f"released by {ms(before.ret)}",
        key=span.key,
        legal_if="it had been refused",
    )
