"""Operations as the monitors read them: one flat record each, split by key.

Every monitor is a pure function ``check(intervals, **params) -> Verdict``.  It first turns the
intervals into ``Span`` records (times, outcome, hold, owner, token) and splits them by key, since
keys are independent, and then looks at one key at a time:

    for key, spans in by_key(intervals, LOCK_F).items(): ...

Traps.  An operation of unknown outcome has ``ret == INF``, also if its completion has a time.
Plain failures say nothing and are left out; refusals that observed the state stay, with the word
in ``seen``.  Equal times are concurrent except within one process, so formulas compare strictly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, BUSY, MISMATCH, NOT_HELD, STALE, freeze, integer
from harness.core.history import OBSERVATIONS, Interval
from harness.core.limits import ANOMALIES_MAX
from harness.core.result import Anomaly, Side, Valid

INF = 1 << 62  # later than every time of a history (146 years in ns)
NS_PER_MS = 1_000_000
_SEES = {ACQUIRE: BUSY, "upgrade": BUSY, "write": STALE, "cas": MISMATCH}


class Span(msgspec.Struct, gc=False):
    """One operation.  call, ret: ns (ret is INF if the outcome is unknown).  seen: the observation
    of a refusal, else None.  until: ns after which an unknown operation can't act, or INF.
    invoke, done: indices of its events (done is -1 if there is none)."""

    f: str
    process: int | str
    owner: Any
    hold: Any
    call: int
    ret: int
    ok: bool
    seen: str | None
    token: int | None
    ttl: int | None
    value: Any
    invoke: int
    done: int
    until: int
    key: str | None

    @property
    def info(self) -> bool:
        return not self.ok and self.seen is None

    @property
    def event(self) -> int:
        """The event that proves it: its completion, else its invoke."""
        return self.invoke if self.done < 0 else self.done

    @property
    def who(self) -> str:
        """ "process 3", or "owner 'x' (process 3)" where the history names owners."""
        if self.owner == self.process:
            return f"process {self.process}"
        return f"owner {self.owner!r} (process {self.process})"


def to_span(op: Interval, f: str, *, fails: bool = False) -> Span | None:
    """The span of an interval, or None for a plain ``fail`` (kept as seen="fail" if ``fails``)."""
    invoke, done = op.invoke, op.complete
    seen: str | None = None
    ret, ok, end = INF, False, -1
    if done is not None:
        end, kind = done.index, done.type
        if kind == "ok":
            ok, ret = True, done.time
            if type(invoke.value) is not dict and type(done.value) is not dict:
                who = invoke.process  # the usual operation on data: nothing more to read
                return Span(
                    f, who, who, None, invoke.time, ret, True, None, None, None, {},
                    invoke.index, end, INF, invoke.key,
                )  # fmt: skip
        elif kind == "fail":
            seen = done.error if done.error in OBSERVATIONS else None
            if seen is None:
                if not fails:
                    return None
                seen = "fail"
            ret = done.time
    first = done.value if done is not None and isinstance(done.value, dict) else {}
    second = invoke.value if isinstance(invoke.value, dict) else {}
    fields = {**second, **first}
    owner = fields.get("owner")
    until = INF
    if not ok and seen is None:
        known = fields.get("until_ns")
        if known is None:
            known = (done.extra.get("until_ns") if done else None) or invoke.extra.get("until_ns")
        until = known if isinstance(known, int) and not isinstance(known, bool) else INF
    return Span(
        f,
        invoke.process,
        invoke.process if owner is None else freeze(owner),
        freeze(fields.get("hold")),
        invoke.time,
        ret,
        ok,
        seen,
        integer(fields.get("token")),
        integer(fields.get("ttl_ns")),
        fields,
        invoke.index,
        end,
        until,
        invoke.key,
    )


def by_key(
    intervals: Iterable[Interval], names: Mapping[str, str], *, fails: bool = False
) -> dict[str | None, list[Span]]:
    """Spans of the operations whose ``f`` is in ``names`` (word in the history -> word here),
    per key, in the order of the lines.  A refusal with a word that its operation cannot observe
    (an acquire that is told "not-held") is a plain failure."""
    found: dict[str | None, list[Span]] = {}
    for op in intervals:
        f = names.get(op.invoke.f)
        if f is not None:
            span = to_span(op, f, fails=fails)
            if span is not None and (fails or span.seen is None or sees(span)):
                found.setdefault(span.key, []).append(span)
    return found


def sees(span: Span) -> bool:
    """Whether the refusal of ``span`` is an observation that its operation can make."""
    return span.seen == _SEES.get(span.f, NOT_HELD)


class Verdict(msgspec.Struct, kw_only=True):
    """What a monitor says of a history (or of one key).

    valid: FALSE is always right; TRUE too, since it needs ``exact``; UNKNOWN: nothing seen, but an
    assumption failed (``why``) on the keys in ``unsure``, so that the general engine should be
    asked about them.  count: number of violations (exact, also if fewer are listed).  suspects:
    what looks wrong on keys where that need not be right.
    """

    model: str
    valid: Valid = Valid.TRUE
    anomalies: list[Anomaly] = msgspec.field(default_factory=list)
    count: int = 0
    exact: bool = True
    sound: bool = True
    why: str = ""
    keys: int = 0
    unsure: list[str | None] = msgspec.field(default_factory=list)
    suspects: list[Anomaly] = msgspec.field(default_factory=list)
    stats: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def ops(self) -> list[int]:
        """Events of the first violation: a witness of 2-6 events (2-4 operations)."""
        return self.anomalies[0].ops if self.anomalies else []

    @property
    def says(self) -> str:
        if self.anomalies:
            more = f" (and {self.count - 1} more)" if self.count > 1 else ""
            return self.anomalies[0].says + more
        if not self.exact:
            return f"{self.model}: nothing seen, but not exact: {self.why}"
        return f"{self.model}: no violation"

    def add(self, anomaly: Anomaly) -> None:
        self.count += 1
        self.valid = Valid.FALSE
        if len(self.anomalies) < ANOMALIES_MAX:
            self.anomalies.append(anomaly)

    def doubt(self, why: str, key: str | None = None, *, sound: bool = False) -> None:
        """An assumption failed on ``key``.  sound: violations that are found are right anyway."""
        if self.exact:
            self.exact, self.why = False, why
        self.sound = self.sound and sound
        if key not in self.unsure:
            self.unsure.append(key)


def judge(
    model: str,
    keys: Mapping[Any, list[Span]],
    one: Callable[[list[Span], Verdict], None],
) -> Verdict:
    """Runs ``one`` on the spans of every key and puts the verdicts together.

    What was found on a key whose assumptions failed is only a suspicion.
    """
    whole = Verdict(model=model, keys=len(keys))
    for key, spans in keys.items():
        part = Verdict(model=model, stats=whole.stats)
        one(spans, part)
        if not part.exact:
            whole.doubt(part.why, key, sound=part.sound)
        if part.exact or part.sound:
            for anomaly in part.anomalies:
                whole.add(anomaly)
            whole.count += part.count - len(part.anomalies)
        else:
            whole.suspects.extend(part.anomalies)
    whole.anomalies.sort(key=lambda anomaly: max(anomaly.ops, default=0))
    if whole.valid is Valid.TRUE and not whole.exact:
        whole.valid = Valid.UNKNOWN
    return whole


def ms(ns: int) -> str:
    """A time in ms with three digits at most: 1.5 ms, or "the end" for INF."""
    return "the end" if ns >= INF else f"{ns / NS_PER_MS:.3f}".rstrip("0").rstrip(".") + " ms"


def at_key(key: str | None) -> str:
    return "" if key is None else f"key {key!r}: "


def service(
    kind: str,
    key: str | None,
    says: str,
    ops: list[int],
    *,
    legal_if: str,
    overlap_ns: int | None = None,
    side: Side = Side.SERVICE,
) -> Anomaly:
    """An anomaly of the lock service (or of ``side``), its sentence opened with the key."""
    return Anomaly(
        kind=kind,
        side=side,
        ops=list(dict.fromkeys(ops)),
        says=at_key(key) + says,
        overlap_ns=overlap_ns,
        key=key,
        legal_if=legal_if,
    )
