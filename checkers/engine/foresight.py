"""Seeing a dead end early: the next answer on record says what the state must become.

A model whose states only grow (``kv``: appends) can tell from a state and a later read's answer
that they will never meet: the state is no prefix of what was read.  Only an operation that starts
afresh (``put``) could help, so if none can happen before that read must be done, the configuration
is dropped at once instead of after all orders of the appends in between.

The model gives three answers (see ``Model.wants``); this class knows which read comes next and
which fresh starts are still possible.  It errs on the side of "may help".
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from checkers.models.base import RESETS

if TYPE_CHECKING:
    from checkers.engine.work import Work


class Foresight:
    """Made by ``Work.foresight`` when it is first wanted, and kept up by ``catch_up``."""

    __slots__ = (
        "_call",
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
        self._of_class: list[Any] = []  # class -> what Model.wants said
        self._call = 0  # operations looked at

    def catch_up(self) -> None:
        """Takes note of the operations and returns laid out since the last time."""
        work, fresh, of_class = self.work, self._fresh, self._of_class
        class_of, wants, first_want = work.class_of, self._wants, self._first_want
        seq = work.seq
        of_class.extend(map(work.model.wants, work.prepared[len(of_class) :]))
        if not of_class:
            return
        for i in range(self._call, work.called):
            if of_class[class_of[i]] is RESETS:
                fresh.add(i)
                self._fresh_calls.append(work.calls[i])
        self._call = work.called
        for r in range(len(first_want), len(seq)):
            choices = work.choices[r]
            first_want.append(len(wants))
            self._open_fresh.append(
                () if fresh.isdisjoint(choices) else tuple(j for j in choices if j in fresh)
            )
            wanted = of_class[class_of[seq[r]]]
            if wanted is not None and wanted is not RESETS:
                wants.append((seq[r], wanted))

    def hopeless(self, state: int, r: int, mask: int) -> bool:
        """Whether the next read on record can no longer be right, whatever is done before it."""
        if r >= len(self._first_want):
            return False
        work, wants = self.work, self._wants
        calls, returns, bit = work.calls, work.returns, work.bit
        here = returns[work.seq[r]]
        for place in range(self._first_want[r], len(wants)):
            i, wanted = wants[place]
            if mask & bit[i] and calls[i] <= here:
                continue  # done already
            if self._leads(work.states[state], wanted):
                return False
            break
        else:
            return False
        # No: unless an operation that starts afresh may still come before that read returns.
        for j in self._open_fresh[r]:
            if not mask & bit[j]:
                return False
        if work.infos:
            fresh, infos = self._fresh, work.infos
            if any(infos[place] in fresh for place in range(work.infos_before[r])):
                return False
        later, end = self._fresh_calls, returns[i]
        return bisect_right(later, here) >= bisect_right(later, end)
