"""Breadth-first search, return by return: all configurations that a legal order can have there.

Lowe's just-in-time linearization on the same graph as ``wgl``: at each return, everything that can
be done before it is worked out, with dominance *inside* this closure (without it the closure alone
explodes), and only what has done the returning operation goes on.  Configurations that used fewer
unknown operations are taken first, so that the others find themselves dominated at once.

It needs memory for one return only and finds the exact return at which a history becomes illegal,
but walks all configurations of a good history, where ``wgl`` follows one path.  So ``wgl`` gets the
first try, and this one takes over: a violation makes a depth-first search undo everything.

Trap: configurations can skip returns (of operations done early), hence a level per return.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from checkers.engine.seen import Seen, Stuck
from checkers.engine.wgl import unknowns

if TYPE_CHECKING:
    from checkers.engine.budget import Budget
    from checkers.engine.work import Work

Configuration = tuple[int, int, int]  # mask, state, used
Levels = dict[int, dict[int, deque[Configuration]]]  # return -> how many used -> configurations


def search(work: Work, budget: Budget) -> tuple[bool | None, Stuck]:
    """(True: an order exists; False: none does; None: out of budget), and how far it got."""
    stuck = Stuck()
    seen = Seen(work)
    levels: Levels = {0: {0: deque([(0, 0, 0)])}}
    pause = budget.first_check
    r = 0
    while True:
        if r == len(work.seq) and not work.extend():
            return True, stuck
        level = levels.pop(r, {})
        seen.clear()
        ends: list[Configuration] = []
        here: Configuration = (0, 0, 0)
        while level:
            count = min(level)
            queue = level[count]
            while queue:
                here = queue.popleft()
                if not seen.admit(r, *here):
                    continue
                stuck.nodes += 1
                if not _expand(work, r, here, (count, level, levels)):
                    ends.append(here)
                if stuck.nodes >= pause:
                    seen.pending = len(queue) + _size(levels)
                    pause = budget.pause(stuck.nodes, seen)
                    if pause < 0:
                        stuck.note(r, here[1], here[0], here[2])
                        return None, stuck
            del level[count]
        if not levels:
            for mask, state, used in ends or [here]:
                stuck.note(r, state, mask, used)
            return False, stuck
        r += 1


def _size(levels: Levels) -> int:
    return sum(len(queue) for level in levels.values() for queue in level.values())


def _expand(
    work: Work,
    r: int,
    here: Configuration,
    into: tuple[int, dict[int, deque[Configuration]], Levels],
) -> bool:
    """Puts all that can follow ``here`` where it belongs; False if nothing can."""
    mask, state, used = here
    count, level, levels = into
    x, row, any_found = work.seq[r], work.rows[state], False
    foresight = work.foresight()
    for i in chain(work.choices[r], unknowns(work, r, state, mask, used)):
        if i >= 0:
            if mask & work.bit[i] or (work.after and not work.may_follow(i, r, mask)):
                continue
            kind, mask2, used2, steps = work.class_of[i], mask | work.bit[i], used, count
        else:
            kind = work.class_of[work.infos[~i]]
            mask2, used2, steps = mask, used | 1 << ~i, count + 1
        target = row.get(kind)
        if target is None:
            target = work.move(state, kind)
        if target < 0:
            continue
        r2 = r
        if i == x:
            r2, mask2 = work.pass_returns(r, mask2)
        if foresight and target != state and foresight.hopeless(target, r2, mask2):
            continue
        any_found = True
        there = level if r2 == r else levels.setdefault(r2, {})
        there.setdefault(steps, deque()).append((mask2, target, used2))
        if work.watches[kind] and not work.bounded:
            break  # at no cost, so it is done at once: see wgl
    return any_found
