"""Semaphore, read/write lock, reentrant mutex and register in a stream, by the batch monitors.

    verdict = check_segments("history.jsonl", "semaphore", k=3)

The history of each key is cut into pieces of some hundred operations, and the monitor of the model
judges piece by piece; only what is still open goes on to the next.  That is exact where the cut is
made well:

    locks      no operation but acquires is under way.  A hold counts from the return of its acquire
               to the call of its release, so a hold that is open at the cut just stands in both
               pieces, and one that is over can be forgotten.
    register   nothing is under way and the last operation ran alone: it says the value.

Operations of unknown outcome: an acquire, or a write, is kept until its hold, or value, is met
again.  If somebody goes on after another one, if there is no good place for a cut for too long, or
if the monitor itself is not exact, the *key* is put aside and judged as a whole by a second look at
the file, which needs memory for that key.

Trap: a register that is never idle, as with many clients on it, is such a key.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

from checkers.models.base import ACQUIRE, LOCK_F, RELEASE, RENEW, freeze, hold_of, integer, owner_of
from checkers.models.base import until_ns as until_of
from checkers.models.register import CAS_F, cas_pair, payload
from checkers.models.shared import RW_F
from checkers.monitors import cas, reentrant, rwlock, semaphore
from checkers.monitors.span import Verdict
from checkers.online_says import Says
from checkers.stream import Lines, read_keys
from harness.core.errors import UserError
from harness.core.history import NEMESIS, Interval, Op, Type, pair
from harness.core.limits import HOLDS_REMEMBERED_MAX
from harness.core.result import Valid

PIECE = 256  # operations of a key from which on a place for a cut is looked for
PIECE_MAX = 1 << 14  # operations of a key at which the search for a place is given up

Monitor = Callable[[list[Interval]], Verdict]
BY_LINE = attrgetter("invoke.index")  # the order of the file


class Piece:
    """The operations of one key since the last cut."""

    def __init__(self) -> None:
        self.ops: list[Interval] = []
        self.size = 0  # operations that are new, not carried
        self.under_way = 0  # of those that forbid a cut
        self.last_ns = -1
        self.reported: list[set[int]] = []

    def news(self, verdict: Verdict, carried: set[int]) -> tuple[list[Any], int]:
        """(anomalies not told before, their number); remembers those that may be met again."""
        fresh = [
            anomaly
            for anomaly in verdict.anomalies
            if not any(known <= set(anomaly.ops) for known in self.reported)
        ]
        told = [set(anomaly.ops) & carried for anomaly in verdict.anomalies]
        self.reported = [events for events in told if len(events) > 1]
        return fresh, verdict.count - (len(verdict.anomalies) - len(fresh))


class LockPiece(Piece):
    """A lock's: ``open`` has the operations of each holder that may still hold."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self.by_hold = model != "reentrant"
        self.waiting: dict[int, Hashable] = {}  # acquires under way: index -> whose
        self.open: dict[Hashable, list[Interval]] = {}
        self.count: dict[Hashable, int] = {}
        self.unknown: OrderedDict[Hashable, Interval | None] = OrderedDict()

    def began(self, invoke: Op) -> None:
        if _word(invoke) == ACQUIRE:
            self.waiting[invoke.index] = self.holder(Interval(invoke, None))
        else:
            self.under_way += 1

    def holder(self, op: Interval) -> Hashable:
        hold = hold_of(op) if self.by_hold else None
        return owner_of(op) if hold is None else ("hold", hold)

    def take(self, op: Interval) -> str:
        """Takes an operation that ended; why the key must be put aside, or ""."""
        word, info = _word(op.invoke), op.outcome == Type.INFO
        if word == ACQUIRE:
            self.waiting.pop(op.invoke.index, None)
        else:
            self.under_way -= 1
        if op.outcome == Type.FAIL and word == ACQUIRE:
            return ""
        holder = self.holder(op)
        mine = self.open.setdefault(holder, [])
        if holder in self.unknown:
            known = self.unknown.pop(holder)
            if known is None:
                return "somebody went on after an unknown outcome"
            mine.append(known)
            self.ops.append(known)
        mine.append(op)
        self.ops.append(op)
        if info and until_of(op) is not None:
            return "an operation of unknown outcome has an end"
        weight = integer(op.field("permits"))
        had = self.count.get(holder, 0)
        if word == ACQUIRE and not info:
            self.count[holder] = had + (1 if weight is None else weight)
        elif word == RELEASE and (info or op.outcome == Type.OK):
            whole = had if hold_of(op) is not None and self.by_hold else 1
            self.count[holder] = max(0, had - (whole if weight is None else weight))
        return ""

    def carry(self) -> str:
        """Leaves what goes on to the next piece; why the key must be put aside, or ""."""
        carried: list[Interval] = []
        for holder, ops in list(self.open.items()):
            if self.count.get(holder):
                self.open[holder] = ops = _kept(ops) if self.by_hold else _nested(ops)
                carried += ops
                continue
            del self.open[holder]
            self.count.pop(holder, None)
            unknown = [op for op in ops if op.outcome == Type.INFO]
            if unknown and any(_renews(op) for op in ops):
                return "a grant of unknown outcome was renewed"
            if unknown:
                alone = len(ops) == 1 and _word(ops[0].invoke) == ACQUIRE
                self.unknown[holder] = ops[0] if alone else None
        self.ops = carried
        if max(len(self.unknown), len(carried)) > HOLDS_REMEMBERED_MAX:
            return "too many holds and unknown outcomes to remember"
        return ""

    def may_cut(self) -> bool:
        """Whether no acquire under way is one of a hold that others work on already."""
        return not any(holder in self.open for holder in self.waiting.values())

    def check(self, monitor: Monitor) -> Verdict:
        return monitor(self.ops)


def _kept(ops: list[Interval]) -> list[Interval]:
    """What a hold that goes on leaves to the next piece: renewals prove no more than its grant."""
    if ops[0].outcome != Type.OK or hold_of(ops[0]) is None:
        return ops
    return [op for op in ops if _word(op.invoke) != RENEW or op.outcome != Type.OK]


def _nested(ops: list[Interval]) -> list[Interval]:
    """The acquire since which an owner holds, and as many more as it has not released."""
    mine: list[Interval] = []
    for op in ops:
        word = _word(op.invoke)
        if word == ACQUIRE and op.outcome == Type.OK:
            mine.append(op)
        elif word == RELEASE and mine and op.outcome in (Type.OK, Type.INFO):
            mine.pop()
    if ops[-1].outcome == Type.INFO:
        mine.append(ops[-1])  # if the owner goes on after it, nothing is certain
    return mine


class RegisterPiece(Piece):
    """A register's: the value it surely had at the cut, and writes that may still happen."""

    def __init__(self, initial: Any) -> None:
        super().__init__()
        self.initial = initial
        self.unknown: list[Interval] = []
        self.reach_ns = -1  # greatest return before that of the last operation
        self.last: Interval | None = None

    def began(self, invoke: Op) -> None:
        self.under_way += 1

    def take(self, op: Interval) -> str:
        self.under_way -= 1
        if op.outcome == Type.INFO:
            if until_of(op) is not None:
                return "an operation of unknown outcome has an end"
            self.unknown.append(op)
            return "" if len(self.unknown) <= HOLDS_REMEMBERED_MAX else "too many unknown writes"
        self.ops.append(op)
        if self.last is not None:
            self.reach_ns = max(self.reach_ns, self.last.return_ns or 0)
        self.last = op
        return ""

    def may_cut(self) -> bool:
        """Whether the last operation ran alone and was answered, and so tells the value."""
        last = self.last
        return last is not None and last.outcome == Type.OK and last.call_ns > self.reach_ns

    def carry(self) -> str:
        last = self.last
        if last is not None:
            self.initial = _value_after(last)
        seen = {freeze(value) for op in self.ops for value in _seen(op)}
        self.unknown = [op for op in self.unknown if not seen & {freeze(_written(op))}]
        self.ops, self.last, self.reach_ns = [], None, -1
        return ""

    def check(self, monitor: Monitor) -> Verdict:
        everything = self.ops + self.unknown
        return cas.check(sorted(everything, key=BY_LINE), initial=self.initial)


class Segments:
    """All keys of a stream; ``finish`` gives the verdict."""

    def __init__(self, model: str, monitor: Monitor, *, initial: Any, piece: int) -> None:
        self.model, self.monitor, self.initial, self.piece = model, monitor, initial, piece
        self.names = CAS_F if model == "cas" else {*LOCK_F, *(RW_F if model == "rwlock" else ())}
        self.pending: dict[int | str, Op] = {}
        self.pieces: dict[str | None, LockPiece | RegisterPiece] = {}
        self.aside: dict[str | None, str] = {}
        self.verdict = Verdict(model=model)
        self.says = Says()
        self.now = self.last_index = -1
        self.events = self.judged = 0

    def feed(self, batch: Iterable[Op]) -> None:
        """Takes the next events; UserError if they are malformed."""
        for event in batch:
            if event.time < self.now or event.index <= self.last_index:
                said: Any = event
                raise UserError(self.says.out_of_order(said, self.now, self.last_index))
            self.now, self.last_index = event.time, event.index
            self.events += 1
            invoke = self.pending.get(event.process)
            if event.type == Type.INVOKE:
                if invoke is not None:
                    self.ended(Interval(invoke, None))
                self.pending[event.process] = event
                if event.f in self.names and event.key not in self.aside:
                    piece = self.of(event.key)
                    self.maybe_cut(event.key, piece)
                    piece.began(event)
                    piece.last_ns = self.now
            elif invoke is not None and (event.f, event.key) == (invoke.f, invoke.key):
                del self.pending[event.process]
                self.ended(Interval(invoke, event))
            elif event.process != NEMESIS and event.f != "lost":
                odd: Any = event, invoke
                raise UserError(self.says.unpaired(*odd))

    def of(self, key: str | None) -> LockPiece | RegisterPiece:
        found = self.pieces.get(key)
        if found is None:
            cas_ = self.model == "cas"
            found = RegisterPiece(self.initial) if cas_ else LockPiece(self.model)
            self.pieces[key] = found
        return found

    def ended(self, op: Interval) -> None:
        """An operation ended, or will never."""
        key = op.invoke.key
        if op.invoke.f not in self.names or key in self.aside:
            return
        piece = self.of(key)
        piece.last_ns = self.now
        piece.size += 1
        why = piece.take(op)
        if not why and piece.size >= PIECE_MAX:
            why = "no moment at which the history of the key could be cut"
        if why:
            self.put_aside(key, why)

    def put_aside(self, key: str | None, why: str) -> None:
        self.aside[key] = why
        self.pieces.pop(key, None)

    def maybe_cut(self, key: str | None, piece: LockPiece | RegisterPiece) -> None:
        enough = piece.size >= self.piece and self.now > piece.last_ns
        if enough and not piece.under_way and piece.may_cut():
            self.cut(key, piece)

    def cut(self, key: str | None, piece: LockPiece | RegisterPiece) -> None:
        """Judges what there is and keeps what goes on."""
        piece.ops.sort(key=BY_LINE)
        found = piece.check(self.monitor)
        self.judged += piece.size
        if not found.exact:
            self.put_aside(key, found.why)
            return
        why = piece.carry()
        if why:
            self.put_aside(key, why)
            return
        carried = {e.index for op in piece.ops for e in (op.invoke, op.complete) if e is not None}
        fresh, count = piece.news(found, carried)
        for anomaly in fresh:
            self.verdict.add(anomaly)
        self.verdict.count += count - len(fresh)
        piece.size = 0

    def finish(self) -> Verdict:
        """The verdict on all keys that were not put aside."""
        for invoke in list(self.pending.values()):
            self.ended(Interval(invoke, None))
        keys = len(self.pieces) + len(self.aside)
        for key, piece in list(self.pieces.items()):
            if piece.size:
                self.cut(key, piece)
        self.verdict.keys = keys
        self.verdict.stats.update(events=self.events)
        return self.verdict


def check_segments(
    source: str | Path | Iterable[bytes | str],
    model: str,
    *,
    k: int | None = None,
    initial: Any = None,
    piece: int = PIECE,
) -> Verdict:
    """The verdict of one of ``checkers.long.SEGMENTED`` on a stream of JSON lines.

    k: permits of a semaphore; initial: first value of a register; both default to the header's.
    piece: operations of a key from which on a cut is made.  UserError: malformed, or k not known.
    """
    lines = Lines(source, Op)
    batches = iter(lines)
    head = next(batches, [])
    permits = lines.header.k if k is None else k
    if model == "semaphore" and permits is None:
        raise UserError("semaphore: the number of permits is not known; give k")
    first = lines.header.initial if initial is None else initial
    monitors: dict[str, Monitor] = {
        "reentrant": reentrant.check,
        "semaphore": lambda ops: semaphore.check(ops, k=permits or 1),
        "rwlock": rwlock.check,
        "cas": lambda ops: cas.check(ops, initial=first),
    }
    run = Segments(model, monitors[model], initial=first, piece=piece)
    run.feed(head)
    for batch in batches:
        run.feed(batch)
    verdict = run.finish()
    verdict.stats["torn"] = lines.torn
    if run.aside and lines.path is not None:
        _again(lines.path, run, verdict)
    else:
        for key, why in run.aside.items():
            verdict.doubt(why, key)
    if verdict.valid is Valid.TRUE and (not verdict.exact or not verdict.keys):
        verdict.valid = Valid.UNKNOWN
        verdict.why = verdict.why or "nothing of this kind happened"
    return verdict


def _again(path: Path, run: Segments, verdict: Verdict) -> None:
    """The batch monitor for the keys that were put aside."""
    ops = pair(event for event in read_keys(path, frozenset(run.aside)) if event.f in run.names)
    found = run.monitor([op for op in ops if not _refused_acquire(op)])
    verdict.exact, verdict.why, verdict.unsure = found.exact, found.why, found.unsure
    for anomaly in found.anomalies:
        verdict.add(anomaly)
    verdict.count += found.count - len(found.anomalies)
    verdict.suspects.extend(found.suspects)
    verdict.stats["read_again"] = len(run.aside)


def _refused_acquire(op: Interval) -> bool:
    return op.outcome == Type.FAIL and _word(op.invoke) == ACQUIRE


def _word(invoke: Op) -> str:
    return LOCK_F.get(invoke.f) or RW_F.get(invoke.f, (invoke.f, None))[0]


def _renews(op: Interval) -> bool:
    """Whether it confirms a hold that goes on."""
    return op.outcome == Type.OK and _word(op.invoke) not in (ACQUIRE, RELEASE)


def _seen(op: Interval) -> list[Any]:
    """The values that an answered operation saw."""
    if op.invoke.f == "read":
        return [payload(op.complete)]
    return [cas_pair(op)[0]] if op.invoke.f == "cas" and op.outcome == Type.OK else []


def _written(op: Interval) -> Any:
    return cas_pair(op)[1] if op.invoke.f == "cas" else payload(op.invoke)


def _value_after(op: Interval) -> Any:
    return payload(op.complete) if op.invoke.f == "read" else _written(op)
