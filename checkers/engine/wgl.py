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
    move, bounded = work.move, work.bounded
    seen = Seen(work)
    known, path, costed = seen.keys, stuck.path, work.costed
    stack: list[tuple[Any, ...]] = []
    state = r = mask = used = nodes = 0
    pause, foresight, infos_before = budget.first_check, work.foresight, work.infos_before
    x, row = seq[0], rows[0]
    items, late, vain = iter(choices[0]), False, False
    while True:
        for i in items:
            if i >= 0:
                b, kind = bit[i], class_of[i]
                if mask & b:
                    continue
                target = row.get(kind)
                if target is None:
                    target = move(state, kind)
                if target < 0 or (after and not work.may_follow(i, r, mask)):
                    continue
                mask2, used2 = mask | b, used
            else:  # an operation of unknown outcome
                kind = class_of[infos[~i]]
                target = row[kind] if kind in row else move(state, kind)
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
            if foresight is not None and foresight.hopeless(target, r2, mask2):
                continue
            final = watches[kind] and not bounded
            if costed:
                fresh = seen.admit(r2, mask2, target, used2)
            elif fresh := (key := (r2, mask2, target)) not in known:
                known[key] = used2
            elif infos:
                fresh = seen.admit(r2, mask2, target, used2)
            if not fresh:
                if not final:
                    continue
                items, vain = iter(()), True  # what is left here was tried elsewhere, in vain
                break
            if not final:
                stack.append((items, state, r, mask, used, len(path), late))
            path.append(i)
            nodes += 1
            state, r, mask, used, x, row = target, r2, mask2, used2, seq[r2], rows[target]
            items, late = iter(choices[r]), False
            if nodes >= pause:
                pause = budget.pause(nodes, seen)
                if pause < 0:
                    stuck.note(r, state, mask, used)
                    return None, stuck.after(nodes)
            break
        else:
            if not (late or vain) and infos_before[r]:
                items, late = unknowns(work, r, state, mask, used), True
                continue
            if r >= stuck.r and not vain:
                stuck.note(r, state, mask, used)
            if not stack:
                return False, stuck.after(nodes)
            items, state, r, mask, used, length, late = stack.pop()
            del path[length:]
            x, row, vain = seq[r], rows[state], False


def unknowns(work: Work, r: int, state: int, mask: int, used: int) -> Iterator[int]:
    """The operations of unknown outcome, as ~place, that may take effect at the ``r``-th return."""
    there = work.infos_before[r]
    for place, _ in work.info_moves(state, there):
        if place >= there:
            break
        if work.info_open(place, r, mask, used):
            yield ~place
