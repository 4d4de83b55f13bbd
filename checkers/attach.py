"""Explanations for the violations of a result: fewest operations, words, picture, what were legal.

    attach(result, prop, parts)           # of ``check_model``: minimised and explained
    draw(history, results)                # of a run's checkers: just drawn

The first violation of each of a few keys is explained; the rest keep the words of whoever found
them.  Where the engine cannot reproduce a violation in its time (or, as for belief, has no model of
it) the operations named are drawn as they are.

Trap: on a long history the whole is never searched again.  Leaving out holders never makes an
operation of another holder illegal (for locks), so the holders named by the violation are enough;
if they do not fail by themselves, all operations are put to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from checkers.engine import check as engine_check
from checkers.explain import Explanation, explain
from checkers.minimise import SEPARABLE, identity
from checkers.models import make
from checkers.models.base import BUSY, Model, hold_of, observed
from checkers.picture import picture
from checkers.properties import Property
from harness.core.history import History, Interval
from harness.core.limits import EXPLAIN_BUDGET_S, EXPLAIN_KEYS_MAX, PICTURES_MAX
from harness.core.result import Anomaly, Result, Valid

_EVENTS_MAX = 6
_CONTEXT_MAX = 4
_NOT_MINIMISED = "not-minimised"


def attach(result: Result, prop: Property, parts: Mapping[str | None, list[Interval]]) -> None:
    """Replaces the first anomaly of a few keys by its explanation, in place."""
    told: set[str | None] = set()
    for place, anomaly in enumerate(result.anomalies):
        if anomaly.key in told or len(told) >= EXPLAIN_KEYS_MAX:
            continue
        told.add(anomaly.key)
        result.anomalies[place] = explained(anomaly, prop, parts[anomaly.key])
    if result.anomalies:
        more = int(result.stats.get("violations", 1)) - 1
        result.says = result.anomalies[0].says + (f" (and {more} more)" if more > 0 else "")


def explained(anomaly: Anomaly, prop: Property, ops: list[Interval]) -> Anomaly:
    """The anomaly in the explanation's words, or with a picture of what it names."""
    named = set(anomaly.ops)
    proof = [op for op in ops if named & set(_events(op))]
    if prop.model is not None:
        told = _told(prop, make(prop.model, **prop.options), ops, proof)
        if told is not None:
            return _reworded(anomaly, told)
    if not proof:
        return anomaly
    return msgspec.structs.replace(anomaly, picture=picture(proof))


def _told(
    prop: Property, model: Model, ops: list[Interval], proof: list[Interval]
) -> Explanation | None:
    for part in (_holders(model, ops, proof), ops):
        if not part:
            continue
        found = engine_check(part, model, budget_s=EXPLAIN_BUDGET_S)
        if found.valid is Valid.FALSE:
            told = explain(part, model, found, budget_s=EXPLAIN_BUDGET_S)
            return None if told.kind == _NOT_MINIMISED or not told.ops else told
    return None


def _holders(model: Model, ops: list[Interval], proof: list[Interval]) -> list[Interval]:
    """The operations of the holders named in ``proof``, if those may stand alone."""
    if not proof or model.name not in SEPARABLE or any(observed(op) == BUSY for op in ops):
        return []
    names = {identity(op, model) for op in proof}
    return [op for op in ops if identity(op, model) in names]


def _events(op: Interval) -> list[int]:
    return [event.index for event in (op.invoke, op.complete) if event is not None]


def _reworded(anomaly: Anomaly, told: Explanation) -> Anomaly:
    events = [index for op in told.ops for index in _events(op)]
    if len(events) > _EVENTS_MAX:
        events = [_events(op)[-1] for op in told.ops][:_EVENTS_MAX]
    return Anomaly(
        kind=told.kind or anomaly.kind,
        side=anomaly.side if told.side is None else told.side,
        ops=sorted(events),
        says=told.says,
        overlap_ns=anomaly.overlap_ns if told.overlap_ns is None else told.overlap_ns,
        key=anomaly.key,
        legal_if=(told.legal_if or "").removeprefix("if ") or anomaly.legal_if,
        picture=told.picture or None,
    )


def draw(history: History, results: Iterable[Result]) -> None:
    """Gives the first anomalies of each result a picture of what they name, where they lack one.

    For the results of a run: its checkers say who broke and when, this shows it.  Operations of
    the same holds are drawn beside it as context.
    """
    wanted = [
        anomaly
        for result in results
        for anomaly in result.anomalies[:PICTURES_MAX]
        if anomaly.picture is None and anomaly.ops
    ]
    if not wanted:
        return
    by_event = {index: op for op in history.intervals() for index in _events(op)}
    by_hold: dict[object, list[Interval]] = {}
    for op in history.intervals():
        hold = hold_of(op)
        if hold is not None:
            by_hold.setdefault((op.invoke.key, hold), []).append(op)
    for anomaly in wanted:
        named = [by_event[index] for index in anomaly.ops if index in by_event]
        proof = list({id(op): op for op in named}.values())
        near = [
            other
            for one in proof
            for other in by_hold.get((one.invoke.key, hold_of(one)), ())
            if other not in proof
        ]
        if proof:
            context = list({id(op): op for op in near}.values())[:_CONTEXT_MAX]
            anomaly.picture = picture([*proof, *context], context=context)
