"""Depth-first search for a legal order: Wing and Gong 1993, with Lowe's memory, and four additions.

From a configuration (which operations are done, state, which unknown ones were used) each operation
that may be next is tried; a configuration seen before is not tried again.  On top of that:

* the key is windowed (see ``work``), so memory is a few words per configuration;
* an operation of unknown outcome is tried only where nothing else helps, never has to be used, and
  a configuration is dropped if an equal one used a subset of its unknown operations (dominance);
* an operation that only watches the state (``Model.watches``) is done as soon as it is legal, and
  for good: an order that does it later stays legal if it is moved to the front.  (Leaving *this*
  state as it is would not be enough: "write 0" does that in state 0, but not where it stood.)
* the operation that returns first is tried first, since it is the one that must be done now.

Sources: Wing, Gong, "Testing and verifying concurrent objects", JPDC 1993; Lowe, "Testing for
linearizability", CCPE 2017; Horn, Kroening, FORTE 2015 (partitions, and quiescent points: there the
mask is empty, so everything before such a point is one key per state and is never walked twice).

Traps: no recursion, so that a long history does not end the interpreter; the third addition is off
where an unknown operation has an end (``bounded``), because doing others early may close it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from checkers.engine.seen import Seen, Stuck

if TYPE_CHECKING:
    from checkers.engine.budget import Budget
    from checkers.engine.work import Work


def search(work: Work, budget: Budget) -> tuple[bool | None, Stuck]:
    """(True: an order exists; False: none does; None: out of budget), and how far it got."""
    stuck = Stuck()
    if not work.seq and not work.extend():
        return True, stuck
    seq, choices, bit, class_of = work.seq, work.choices, work.bit, work.class_of
    rows, infos, after, watches = work.rows, work.infos, work.after, work.watches
    seen = Seen(work)
    known, path, costed = seen.keys, stuck.path, work.costed
    stack: list[tuple[Any, ...]] = []
    state = r = mask = used = nodes = 0
    pause = budget.first_check
    x, row = seq[0], rows[0]
    items, vain = candidates(work, 0, 0, 0, 0), False
    while True:
        for i in items:
            if i >= 0:
                b, kind = bit[i], class_of[i]
                if mask & b:
                    continue
                target = row.get(kind)
                if target is None:
                    target = work.move(state, kind)
                if target < 0 or (after and not work.may_follow(i, r, mask)):
                    continue
                mask2, used2 = mask | b, used
            else:  # an operation of unknown outcome
                kind = class_of[infos[~i]]
                target = row[kind]
                mask2, used2 = mask, used | 1 << ~i
            r2 = r
            if i == x:
                while True:
                    if r2 == len(seq) and not work.extend():
                        path.append(i)
                        return True, stuck.after(nodes)
                    b = bit[seq[r2]]
                    if not mask2 & b:
                        break
                    mask2 ^= b
                    r2 += 1
            final = watches[kind] and not work.bounded
            if infos or costed:
                fresh = seen.admit(r2, mask2, target, used2)
            elif fresh := (key := (r2, mask2, target)) not in known:
                known[key] = 0
            if not fresh:
                if not final:
                    continue
                items, vain = iter(()), True  # what is left here was tried elsewhere, in vain
                break
            if not final:
                stack.append((items, state, r, mask, used, len(path)))
            path.append(i)
            nodes += 1
            state, r, mask, used, x, row = target, r2, mask2, used2, seq[r2], rows[target]
            items = candidates(work, r, state, mask, used) if infos else iter(choices[r])
            if nodes >= pause:
                pause = budget.pause(nodes, seen)
                if pause < 0:
                    stuck.note(r, state, mask, used)
                    return None, stuck.after(nodes)
            break
        else:
            if r >= stuck.r and not vain:
                stuck.note(r, state, mask, used)
            if not stack:
                return False, stuck.after(nodes)
            items, state, r, mask, used, length = stack.pop()
            del path[length:]
            x, row, vain = seq[r], rows[state], False


def candidates(work: Work, r: int, state: int, mask: int, used: int) -> Iterator[int]:
    """What may be next at the ``r``-th return; unknown operations last, as ~place.

    The unknown ones are worked out only when all others were tried.
    """
    yield from work.choices[r]
    there = work.infos_before[r]
    for place, _ in work.info_moves(state, there):
        if place >= there:
            break
        if work.info_open(place, r, mask, used):
            yield ~place
