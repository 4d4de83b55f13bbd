"""fencing: was data harmed by a holder that came too late?  (P3.)

The truth is the resource's own log (``context.resource``, in order of arrival); without one, the
writes of the history.  Two tests, on the *accepted* writes to each resource:

    by token   a write must not be accepted after one with a greater token
    by hold    a write of hold h1 must not be accepted after one of a hold h2 that surely came
               later (the zones of the holds order them), also where writes carry no token

and two more: a refusal as stale needs a greater token accepted before (refused-without-reason),
and tokens of grants must grow (token-inversion, a fault of the service).

Trap: one stale write proves both tests; it is reported once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkers.models.base import BUSY
from checkers.monitors import holds, lease, resource
from checkers.monitors.holds import Block
from checkers.monitors.span import Span, Verdict, at_key, by_key, ms, service
from checkers.view import View
from harness.core.history import History
from harness.core.limits import ANOMALIES_MAX
from harness.core.protocols import CheckContext, ResourceRecord
from harness.core.result import Anomaly, Result, Side, Valid

WRITE = "write"


class Arrival(msgspec.Struct, gc=False):
    """A write at the resource.  ops: its events in the history.  rank: the place of its hold in the
    order of the holds, None if that is not certain."""

    key: str | None
    time: int
    token: int | None
    accepted: bool
    why: str
    ops: list[int]
    who: str
    hold: Any = None
    rank: int | None = None
    grant: Block | None = None


class Fencing:
    """Order of accepted writes at the resource."""

    name = "fencing"
    safety = True

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        writes = by_key(history.intervals(), {WRITE: WRITE}, fails=True)
        if not writes and not context.resource:
            return Result(
                checker=self.name,
                valid=Valid.UNKNOWN,
                says="nobody wrote to a protected resource, so nothing was shown",
                stats={} if context.resource_mode else {"applies": False},
            )
        verdict = Verdict(model="fencing")
        grants = rank_holds(view, verdict)
        logged = bool(context.resource)
        arrivals = from_log(context.resource, writes, grants) if logged else []
        if logged:
            judge_log(arrivals, verdict, fenced=context.resource_mode in ("", "fenced"))
        else:
            _judge_history(history, writes, grants, verdict)
        return self._result(verdict, arrivals, writes, logged=logged, mode=context.resource_mode)

    def _result(
        self,
        verdict: Verdict,
        arrivals: list[Arrival],
        writes: dict[str | None, list[Span]],
        *,
        logged: bool,
        mode: str,
    ) -> Result:
        spans = [span for found in writes.values() for span in found]
        accepted = sum(a.accepted for a in arrivals) if logged else sum(s.ok for s in spans)
        stale = sum(a.why == "stale" for a in arrivals)
        if not logged:
            stale = sum(span.seen == "stale" for span in spans)
        stats: dict[str, Any] = {
            "exact": verdict.exact,
            "why": verdict.why or ("log of the resource" if logged else "writes of the history"),
            "accepted": accepted,
            "stale_refused": stale,
            "stale_accepted": sum(a.kind == "stale-write-accepted" for a in verdict.anomalies),
            "mode": mode,
            "violations": verdict.count,
        }
        valid, says = verdict.valid, verdict.says
        if valid is Valid.TRUE and not accepted:
            valid, says = Valid.UNKNOWN, "the resource accepted no write, so nothing was shown"
        elif valid is Valid.TRUE:
            refused = f"; {stale} late ones were refused" if stale else ""
            says = f"{accepted} writes accepted, none of a holder that came too late{refused}"
        return Result(
            checker=self.name,
            valid=valid,
            says=says,
            anomalies=verdict.anomalies[:ANOMALIES_MAX],
            stats=stats,
        )


def rank_holds(view: View, verdict: Verdict) -> dict[Any, tuple[int, Block]]:
    """Hold id -> (place in the order of the holds of its lock, its zone).

    Holds that collide (a double grant) share a place: neither is surely the later one.  What the
    tokens of the grants say is judged on the way.
    """
    ranks: dict[Any, tuple[int, Block]] = {}
    for spans in view.judged.values():
        scratch = Verdict(model="zones")
        blocks = []
        for hold in holds.group([span for span in spans if span.seen != BUSY], scratch):
            run = lease.prepare(hold, view.ttl_ns, view.context.drift_ppm, scratch)
            if run is not None:
                blocks.append(run.block)
        if not scratch.exact:
            verdict.doubt(f"order of the holds: {scratch.why}", spans[0].key)
        place, reach = 0, -1
        for x in sorted(blocks, key=lambda x: x.a):
            if x.a >= reach:
                place += 1
            reach = max(reach, x.b)
            if x.hold.acquire is not None and x.hold.acquire.hold is not None:
                ranks[x.hold.acquire.hold] = (place, x)
        _grants_in_order(blocks, verdict)
    return ranks


def _grants_in_order(blocks: list[Block], verdict: Verdict) -> None:
    """Tokens must grow from a grant to every grant that was asked for after it was answered.

    Real time alone orders the grants here.  The zones of the leases may not: where the service
    broke a lease they say that the later grant came first, and a right token would be blamed.
    (checkers/lease.py judges the two together.)
    """
    granted = [x for x in blocks if x.hold.granted and x.start.token is not None]
    answered = sorted(granted, key=lambda x: x.start.ret)
    best: Block | None = None  # the greatest token among those answered so far
    done = 0
    for x in sorted(granted, key=lambda x: x.start.call):
        while done < len(answered) and answered[done].start.ret < x.start.call:
            one = answered[done]
            if best is None or (one.start.token or 0) > (best.start.token or 0):
                best = one
            done += 1
        if best is not None and (x.start.token or 0) <= (best.start.token or 0):
            same = x.start.token == best.start.token
            verdict.add(
                service(
                    "token-duplicate" if same else "token-inversion",
                    x.start.key,
                    f"{best.who} was granted the lock by {ms(best.start.ret)} with token "
                    f"{best.start.token}, {x.who} asked for it only then, at {ms(x.start.call)}, "
                    f"and got token {x.start.token}",
                    [best.start.event, x.start.event],
                    legal_if="each grant had a greater token than every grant before it",
                )
            )


def from_log(
    log: list[ResourceRecord],
    writes: dict[str | None, list[Span]],
    grants: dict[Any, tuple[int, Block]],
) -> list[Arrival]:
    """The resource's records with the operations of the history they belong to."""
    by_value: dict[tuple[Any, Any], Span] = {}
    by_hold: dict[Any, list[Span]] = {}
    for spans in writes.values():
        for span in spans:
            value = span.value.get("value")
            if isinstance(value, str | int):
                by_value[(span.hold, value)] = span
            by_hold.setdefault(span.hold, []).append(span)
    found = []
    for record in sorted(log, key=lambda record: record.seq):
        value = record.value if isinstance(record.value, str | int) else None
        op = by_value.get((record.hold, value))
        if op is None:
            op = next(
                (s for s in by_hold.get(record.hold, ()) if s.call <= record.time <= s.ret), None
            )
        arrival = Arrival(
            record.key,
            record.time,
            record.token,
            record.accepted,
            record.why,
            [] if op is None else [op.event],
            f"hold {record.hold!r}" if op is None else op.who,
            record.hold,
        )
        if record.hold in grants:
            arrival.rank, arrival.grant = grants[record.hold]
        found.append(arrival)
    return found


def judge_log(arrivals: list[Arrival], verdict: Verdict, *, fenced: bool) -> None:
    """Judges writes in their order of arrival."""
    greatest: dict[str | None, Arrival] = {}  # accepted, by token
    latest: dict[str | None, Arrival] = {}  # accepted, by hold
    for one in arrivals:
        top, last = greatest.get(one.key), latest.get(one.key)
        if not one.accepted:
            if fenced and one.why == "stale" and _baseless(one, top):
                verdict.add(_baseless_refusal(one))
            continue
        if one.token is not None and top is not None and one.token < (top.token or 0):
            verdict.add(_stale(top, one, "by token"))
        elif one.rank is not None and last is not None and one.rank < (last.rank or 0):
            verdict.add(_stale(last, one, "by hold"))
        if one.token is not None and (top is None or one.token > (top.token or 0)):
            greatest[one.key] = one
        if one.rank is not None and (last is None or one.rank > (last.rank or 0)):
            latest[one.key] = one


def _baseless(one: Arrival, top: Arrival | None) -> bool:
    return one.token is not None and (top is None or (top.token or 0) <= one.token)


def _baseless_refusal(one: Arrival) -> Anomaly:
    return Anomaly(
        kind="refused-without-reason",
        side=Side.RESOURCE,
        ops=one.ops + _grant_ops(one),
        says=f"{at_key(one.key)}the write of {one.who} with token {one.token} was refused as stale "
        f"at {ms(one.time)}, but no greater token had been accepted",
        key=one.key,
        legal_if="a write with a greater token had been accepted before",
    )


def _stale(later: Arrival, late: Arrival, how: str) -> Anomaly:
    tokens = (
        f" (token {late.token} after token {later.token})"
        if late.token is not None and later.token is not None
        else ""
    )
    return Anomaly(
        kind="stale-write-accepted",
        side=Side.RESOURCE,
        ops=list(dict.fromkeys(_grant_ops(late) + _grant_ops(later) + later.ops + late.ops)),
        says=f"{at_key(late.key)}a write of {late.who} was accepted at {ms(late.time)}, after the "
        f"later holder {later.who} had written at {ms(later.time)}{tokens}"
        + _held(late)
        + ("" if how == "by token" else "; the order of the holds proves it"),
        overlap_ns=_lateness(late),
        key=late.key,
        legal_if="the resource had refused the write of the former holder",
    )


def _grant_ops(one: Arrival) -> list[int]:
    return one.grant.ops[:1] if one.grant is not None else []


def _held(late: Arrival) -> str:
    if late.grant is None:
        return ""
    over = _lateness(late)
    return f", {ms(over)} after its own hold could have ended" if over else ""


def _lateness(late: Arrival) -> int | None:
    """How long after the earliest end of its own hold the write arrived (ns)."""
    if late.grant is None or late.time <= late.grant.b:
        return None
    return late.time - late.grant.b


def _judge_history(
    history: History,
    writes: dict[str | None, list[Span]],
    grants: dict[Any, tuple[int, Block]],
    verdict: Verdict,
) -> None:
    """Without a log: by token where all writes carry one, and by the order of the holds."""
    by_token = resource.check(history.intervals())
    if by_token.exact or by_token.sound:
        for anomaly in by_token.anomalies:
            verdict.add(_with_grants(anomaly, writes, grants))
    elif by_token.anomalies:
        verdict.doubt(by_token.why)
    if verdict.count:
        return
    for spans in writes.values():
        top: tuple[int, Span, Block] | None = None  # accepted, greatest rank among the returned
        for at, ends, span in _events(spans):
            ranked = grants.get(span.hold)
            if ranked is None:
                continue
            if ends and (top is None or ranked[0] > top[0]):
                top = (ranked[0], span, ranked[1])
            elif not ends and top is not None and ranked[0] < top[0] and top[1].ret < at:
                verdict.add(
                    _stale(_arrival(top[1], top[0], top[2]), _arrival(span, *ranked), "by hold")
                )


def _events(spans: list[Span]) -> list[tuple[int, bool, Span]]:
    """(time, is it the end, write) of accepted writes; calls before ends at one instant."""
    found = [(span.call, False, span) for span in spans if span.ok]
    found += [(span.ret, True, span) for span in spans if span.ok]
    return sorted(found, key=lambda item: (item[0], item[1], item[2].invoke))


def _arrival(span: Span, rank: int, block: Block) -> Arrival:
    return Arrival(
        span.key,
        span.ret,
        span.token,
        span.ok,
        "",
        [span.event],
        span.who,
        span.hold,
        rank,
        block,
    )


def _with_grants(
    anomaly: Anomaly, writes: dict[str | None, list[Span]], grants: dict[Any, tuple[int, Block]]
) -> Anomaly:
    """Adds the grants of the holds whose writes an anomaly names."""
    ops: list[int] = []
    for span in writes.get(anomaly.key, ()):
        if span.event in anomaly.ops and span.hold in grants:
            ops += grants[span.hold][1].ops[:1]
    anomaly.ops = list(dict.fromkeys(ops + anomaly.ops))
    return anomaly


__all__ = ["Arrival", "Fencing", "from_log", "judge_log", "rank_holds"]
