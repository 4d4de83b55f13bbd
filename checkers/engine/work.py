"""One object's operations, made ready for the search: numbered, lazily, in the order of returns.

The search moves along the *returns* of the operations that surely happened (``required``).  At the
r-th return, ``choices[r]`` are the operations that may be next: those that only watch the state
(see ``early``), the returning one, then all others that are open, in call order.  Each open
operation has a bit of its own (given back when it returns), so "which operations are done" is
always

    (r, mask):  all that returned before the r-th return, and the open ones in the mask

two small numbers, however long the history and however long one operation stays open.  This is the
windowed key.  Operations of unknown outcome are not in this picture: they stand apart in ``infos``,
in call order, and ``infos_before[r]`` of them were called before the r-th return.

Everything is worked out a chunk of returns at a time, when the search gets there: a violation near
the beginning of a long history costs next to nothing.

Traps: times are closed intervals, so a call at the very time of a return is before it (concurrent),
unless both are of one process and the lines say otherwise: ``after`` keeps those few pairs.  States
and operations are interned, so that a transition is a look-up of a small integer in ``rows``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checkers.engine.foresight import Foresight
from checkers.models.base import Model, until_ns
from harness.core.history import Interval, Type

CHUNK = 16  # returns worked out at a time, later half of those known: no look-ahead is wasted
ILLEGAL = -1
INF = 1 << 62  # later than all times
NOTHING = (0, 0)
INFO = Type.INFO.value  # a plain string compares faster


class Work:
    """The operations of one object, for one model.  All lists grow in place, never shrink."""

    __slots__ = (
        "_classes",
        "_foresight",
        "_free",
        "_info_moves",
        "_last_of_class",
        "_next_return",
        "_open",
        "_order",
        "_seers",
        "after",
        "bit",
        "bits",
        "bounded",
        "called",
        "calls",
        "choices",
        "class_of",
        "costed",
        "count",
        "early",
        "infos",
        "infos_before",
        "model",
        "move",
        "ops",
        "position",
        "prepared",
        "returns",
        "rows",
        "same_before",
        "seq",
        "state_ids",
        "states",
        "watches",
        "weight",
    )

    def __init__(self, ops: list[Interval], model: Model) -> None:
        """``model`` must be deterministic; ``ops`` are those of one object, in any order."""
        calls = [op.invoke.time for op in ops]
        if calls != sorted(calls):
            ops = sorted(ops, key=_line_order)
            calls = [op.invoke.time for op in ops]
        self.count = count = len(ops)
        self.ops, self.calls, self.model = ops, calls, model
        self.returns = returns = [
            INF if (done := op.complete) is None or done.type == INFO else done.time for op in ops
        ]
        order = sorted(range(count), key=returns.__getitem__)
        self._order = order[: count - returns.count(INF)]
        calls.append(INF)  # so that a walk of the calls need not ask for the end
        self._next_return = self.called = 0  # ``called``: operations laid out, in call order
        # What watches is done as soon as that is legal, so looking there first leads to fewer dead
        # ends; but where hardly two states are the same, each look is a transition to work out.
        self.early = not model.foresees
        self._open: dict[int, None] = {}  # open operations, but for those in ``_seers``
        self._seers: dict[int, None] = {}  # open operations that only watch, if ``early``
        self._free: list[int] = []
        self.bit = [0] * count  # 0: says nothing, or unknown
        self.class_of = [0] * count
        self.seq: list[int] = []  # required operations in order of return
        self.bits = [0]  # the bits of those in ``seq``, and 0 at the end
        self.choices: list[tuple[int, ...]] = []
        self.infos: list[int] = []
        self.infos_before: list[int] = []
        self.same_before: list[int] = []  # for each info, the one like it before it, or -1
        self.bounded: dict[int, int] = {}  # place in infos -> time after which it can't happen
        self.after: dict[int, int] = {}  # operation -> the one of its process it must come after
        self.position: dict[int, int] = {}  # operations named in ``after`` -> place in seq
        self.prepared: list[Any] = []
        self.watches: list[bool] = []  # class -> whether it never changes a state
        self._classes: dict[Any, int] = {}
        self._last_of_class: dict[int, int] = {}
        self.costed = model.costed
        self.states: list[Any] = [model.init]
        self.state_ids: dict[Any, int] = {model.init: 0}
        self.rows: list[dict[int, int]] = [{}]  # state -> class -> state after it, or ILLEGAL
        self.move = self._mover()
        self._info_moves: dict[int, tuple[int, int]] = {}
        self._foresight: Foresight | None = None
        self.weight = 0  # numbers held in ``choices``

    def extend(self) -> bool:
        """Works out the next chunk of returns.  False if there were none left."""
        had, order = len(self.seq), self._order
        while self._next_return < len(order) and len(self.seq) == had:
            at = self._next_return
            self._next_return = upto = at + max(CHUNK, at // 2)
            self._lay_out(order[at:upto])
        if self._foresight is not None:
            self._foresight.catch_up()
        self.weight += sum(map(len, self.choices[had:])) + 8 * (len(self.seq) - had)
        return len(self.seq) > had

    def grown(self) -> int:
        """How many returns are worked out, after another chunk."""
        self.extend()
        return len(self.seq)

    def _lay_out(self, returning: list[int]) -> None:
        """Walks the events up to the last of ``returning`` (operations in order of return)."""
        returns, calls, bit, class_of = self.returns, self.calls, self.bit, self.class_of
        opened, seers, early = self._open, self._seers, self.early
        free, seq, choices = self._free, self.seq, self.choices
        position, infos_before, bits = self.position, self.infos_before, self.bits
        ops, prepare, watch = self.ops, self.model.prepare, self.model.watches
        watches, prepared, numbers = self.watches, self.prepared, self._classes
        known, call, unknown = numbers.get, self.called, len(self.infos)
        del bits[-1]
        for x in returning:
            end = returns[x]
            while calls[call] <= end:
                what = prepare(ops[call])
                if what is not None:
                    try:
                        kind = known(what)
                        if kind is None:
                            numbers[what] = len(prepared)
                    except TypeError:  # not hashable: a class of its own
                        kind = None
                    if kind is None:
                        kind = len(prepared)
                        prepared.append(what)
                        watches.append(watch(what))
                    class_of[call] = kind
                    if calls[call] == end:
                        self._tie(call)
                    if returns[call] == INF:
                        self._admit_info(call, kind)
                        unknown += 1
                    else:
                        bit[call] = free.pop() if free else 1 << len(opened) + len(seers)
                        (seers if early and watches[kind] else opened)[call] = None
                call += 1
            if b := bit[x]:
                del (seers if x in seers else opened)[x]
                if position and x in position:
                    position[x] = len(seq)
                seq.append(x)
                bits.append(b)
                if not seers:
                    choices.append((x, *opened))
                elif watches[class_of[x]]:
                    choices.append((x, *seers, *opened))
                else:
                    choices.append((*seers, x, *opened))
                infos_before.append(unknown)
                free.append(b)
        bits.append(0)
        self.called = call

    def _admit_info(self, i: int, kind: int) -> None:
        place = len(self.infos)
        self.infos.append(i)
        end_ns = until_ns(self.ops[i])
        if end_ns is not None:
            self.bounded[place] = end_ns
            self.same_before.append(-1)
            return
        if i in self.after:  # must wait for its process: a later twin may be usable before it
            self.same_before.append(-1)
            return
        self.same_before.append(self._last_of_class.get(kind, -1))
        self._last_of_class[kind] = place

    def _tie(self, i: int) -> None:
        """Remembers the last operation of the same process that ended at the tick ``i`` began."""
        invoke = self.ops[i].invoke
        for j in sorted((*self._open, *self._seers)):
            done = self.ops[j].complete
            if (
                j != i
                and self.returns[j] == invoke.time
                and self.ops[j].invoke.process == invoke.process
                and done is not None
                and done.index < invoke.index
            ):
                self.after[i] = j
                self.position[j] = self.count  # not returned yet

    def _mover(self) -> Callable[[int, int], int]:
        """(state, class) -> the state after it, or ILLEGAL; remembered in ``rows``."""
        step, states, prepared, rows = self.model.step, self.states, self.prepared, self.rows
        ids = self.state_ids

        def move(state: int, kind: int) -> int:
            before = states[state]
            after = step(before, prepared[kind])
            if after is None:
                found = ILLEGAL
            elif after is before:
                found = state
            elif after in ids:
                found = ids[after]
            else:
                found = ids[after] = len(states)
                states.append(after)
                rows.append({})
            rows[state][kind] = found
            return found

        return move

    def foresight(self) -> Foresight | None:
        """What sees dead ends early, if the model can tell any."""
        if self._foresight is None and self.model.foresees:
            self._foresight = Foresight(self)
            self._foresight.catch_up()
        return self._foresight

    def info_moves(self, state: int, there: int) -> int:
        """Which of the first ``there`` infos are legal in ``state`` and change it: a bit each.

        Remembered per state and only ever extended.
        """
        upto, found = self._info_moves.get(state, NOTHING)
        if upto < there:
            row = self.rows[state]
            for place in range(upto, there):
                kind = self.class_of[self.infos[place]]
                target = row[kind] if kind in row else self.move(state, kind)
                if target >= 0 and target != state:
                    found |= 1 << place
            self._info_moves[state] = (there, found)
        return found if upto <= there else found & (1 << there) - 1

    def pass_returns(self, r: int, mask: int) -> tuple[int, int]:
        """The first return of an operation that is not done, and the mask there."""
        bits = self.bits
        while r < len(self.seq) or self.extend():
            if not mask & (b := bits[r]):
                break
            mask ^= b
            r += 1
        return r, mask

    def may_follow(self, i: int, r: int, mask: int) -> bool:
        """Whether the operation that ``i`` must come after (see ``after``) is done."""
        first = self.after.get(i)
        return first is None or self.position[first] < r or bool(mask & self.bit[first])

    def info_open(self, place: int, r: int, mask: int, used: int) -> bool:
        """Whether the info at ``place`` can still take effect, given what is done."""
        if used >> place & 1:
            return False
        like = self.same_before[place]
        if like >= 0 and not used >> like & 1:
            return False  # the same thing, called earlier, is at least as good
        if self.after and not self.may_follow(self.infos[place], r, mask):
            return False
        end_ns = self.bounded.get(place)
        return end_ns is None or not self._over(end_ns, r, mask, used)

    def _over(self, end_ns: int, r: int, mask: int, used: int) -> bool:
        """Whether something called after ``end_ns`` is done already."""
        calls, bit = self.calls, self.bit
        if any(calls[i] > end_ns for i in self.choices[r] if mask & bit[i]):
            return True
        place = used.bit_length() - 1
        while place >= 0 and calls[self.infos[place]] > end_ns:
            if used >> place & 1:
                return True
            place -= 1
        return self._returned_after(end_ns, r)

    def _returned_after(self, end_ns: int, r: int) -> bool:
        """Whether one of the first ``r`` to return was called after ``end_ns``."""
        seq, calls, returns = self.seq, self.calls, self.returns
        spot = r - 1
        while spot >= 0 and returns[seq[spot]] > end_ns:
            if calls[seq[spot]] > end_ns:
                return True
            spot -= 1
        return False


def _line_order(op: Interval) -> tuple[int, int]:
    return op.invoke.time, op.invoke.index
