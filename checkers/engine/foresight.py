"""Seeing a dead end early: the next answer on record says what the state must become.

A model whose states only grow (``kv``: appends) can tell from a state and a later read's answer
that they will never meet: the state is no prefix of what was read.  Only an operation that starts
afresh (``put``) could help, so if none can happen before that read must be done, the configuration
is dropped at once instead of after all orders of the appends in between.

The model gives three answers (see ``Model.wants``); this class knows which read comes next and
which fresh starts are still possible.  It errs on the side of "may help".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from checkers.models.base import RESETS

if TYPE_CHECKING:
    from checkers.engine.work import Work


class Foresight:
    """Kept up by ``Work``: ``classed`` per class of operations, ``catch_up`` per chunk."""

    __slots__ = (
        "_ask",
        "_first_want",
        "_fresh",
        "_fresh_calls",
        "_leads",
        "_of_class",
        "_open_fresh",
        "_wants",
        "work",
    )

    def __init__(self, work: Work) -> None:
        self.work = work
        self._wants: list[tuple[int, Any]] = []  # (operation, what it needs), in order of return
        self._first_want: list[int] = []  # place in seq -> first of _wants at or after it
        self._fresh: set[int] = set()
        self._fresh_calls: list[int] = []
        self._open_fresh: list[tuple[int, ...]] = []  # place in seq -> fresh starts open there
        self._leads = work.model.leads
        self._ask = work.model.wants
        self._of_class: list[Any] = []  # class -> what Model.wants said

    def classed(self, what: Any) -> bool:
        """Takes note of a new class of operations; True if it only watches."""
        wanted = self._ask(what)
        self._of_class.append(wanted)
        return wanted is not None and wanted is not RESETS

    def catch_up(self, first_call: int, last_call: int) -> None:
        """Takes note of the operations just laid out, and of the returns."""
        work, fresh, of_class = self.work, self._fresh, self._of_class
        class_of, wants, first_want = work.class_of, self._wants, self._first_want
        for i in range(first_call, last_call):
            if of_class and of_class[class_of[i]] is RESETS:
                fresh.add(i)
                self._fresh_calls.append(work.calls[i])
        for r in range(len(first_want), len(work.seq)):
            choices = work.choices[r]
            first_want.append(len(wants))
            self._open_fresh.append(
                () if fresh.isdisjoint(choices) else tuple(j for j in choices if j in fresh)
            )
            wanted = of_class[class_of[choices[0]]]
            if wanted is not None and wanted is not RESETS:
                wants.append((choices[0], wanted))

    def hopeless(self, state: int, r: int, mask: int) -> bool:
        """Whether the next read on record can no longer be right, whatever is done before it."""
        work = self.work
        if r >= len(self._first_want):
            return False
        here: int = work.returns[work.seq[r]]  # type: ignore[assignment]  # required: it returned
        for place in range(self._first_want[r], len(self._wants)):
            i, wanted = self._wants[place]
            if mask & work.bit[i] and work.calls[i] <= here:
                continue  # done already
            if self._leads(work.states[state], wanted):
                return False
            return not self._fresh_start(r, mask, here, i)
        return False

    def _fresh_start(self, r: int, mask: int, here: int, before: int) -> bool:
        """Whether an operation that resets the state may still come before ``before`` returns."""
        work = self.work
        if any(not mask & work.bit[i] for i in self._open_fresh[r]):
            return True
        if any(work.infos[place] in self._fresh for place in range(work.infos_before[r])):
            return True
        end: int = work.returns[before]  # type: ignore[assignment]  # required: it returned
        return bisect_right(self._fresh_calls, here) < bisect_left(self._fresh_calls, end + 1)
