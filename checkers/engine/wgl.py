"""Depth-first search for a legal order: Wing and Gong 1993, with Lowe's memory, and four additions.

From a configuration (which operations are done, state, which unknown ones were used) each operation
that may be next is tried; a configuration seen before is not tried again.  On top of that:

* the key is windowed (see ``work``), so memory is a few words per configuration;
* an operation of unknown outcome is tried only where nothing else helps, never has to be used, and
  a configuration is dropped if an equal one used a subset of its unknown operations (dominance);
* an operation that only watches the state (``Model.watches``) is done as soon as it is legal, and
  for good: an order that does it later stays legal if it is moved to the front.  (Leaving *this*
  state as it is would not be enough: "write 0" does that in state 0, but not where it stood.)
* those that only watch are tried first, then the one that returns first, which must be done now.

Sources: Wing, Gong, "Testing and verifying concurrent objects", JPDC 1993; Lowe, "Testing for
linearizability", CCPE 2017; Horn, Kroening, FORTE 2015 (partitions, and quiescent points: there the
mask is empty, so everything before such a point is one key per state and is never walked twice).

Traps: no recursion, so that a long history does not end the interpreter; the third addition is off
where an unknown operation has an end (``bounded``), because doing others early may close it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkers.engine.seen import Seen, Stuck

if TYPE_CHECKING:
    from checkers.engine.budget import Budget
    from checkers.engine.work import Work

# What is being tried at a configuration.
KNOWN, UNKNOWN, VAIN = range(3)
BLIND = 6  # dead ends after which it pays to look ahead


def search(work: Work, budget: Budget) -> tuple[bool | None, Stuck]:
    """(True: an order exists; False: none does; None: out of budget), and how far it got."""
    stuck, seen = Stuck(), Seen(work)
    if not work.seq and not work.extend():
        return True, stuck
    seq, choices, bit, class_of, rows = work.seq, work.choices, work.bit, work.class_of, work.rows
    infos, infos_before, bounded, after = work.infos, work.infos_before, work.bounded, work.after
    move, watches, costed, bits = work.move, work.watches, work.costed, work.bits
    dead_ends, foresight = 0, None
    known, path, pause = seen.keys, stuck.path, budget.first_check
    stack: list[tuple[Any, ...]] = []
    state, r, mask, used, nodes, size = 0, 0, 0, 0, 0, len(seq)
    x, row, items, stage = seq[0], rows[0], iter(choices[0]), KNOWN
    while True:
        for i in items:
            if i >= 0:
                if mask & (b := bit[i]) or (after and not work.may_follow(i, r, mask)):
                    continue
                kind, mask2, used2 = class_of[i], mask | b, used
            else:
                kind, mask2, used2 = class_of[infos[~i]], mask, used | 1 << ~i
            target = row[kind] if kind in row else move(state, kind)
            if target < 0:
                continue
            r2 = r
            if i == x:
                while mask2 & (b := bits[r2]) or r2 == size:
                    if r2 < size:
                        mask2 ^= b
                        r2 += 1
                    elif (size := work.grown()) == r2:
                        path.append(i)
                        return True, stuck.after(nodes)
            if foresight and target != state and foresight.hopeless(target, r2, mask2):
                continue
            if not costed and (fresh := (key := (r2, mask2, target)) not in known):
                known[key] = used2
            elif costed or infos:
                fresh = seen.admit(r2, mask2, target, used2)
            final = watches[kind] and not bounded
            if fresh:
                if not final:
                    stack.append((items, stage, state, r, mask, used, len(path)))
                path.append(i)
                nodes += 1
                state, r, mask, used, x, row = target, r2, mask2, used2, seq[r2], rows[target]
                items, stage = iter(choices[r]), KNOWN
                if nodes >= pause and (pause := budget.pause(nodes, seen)) < 0:
                    stuck.note(r, state, mask, used)
                    return None, stuck.after(nodes)
                break
            if final:
                items, stage = iter(()), VAIN  # the rest was tried elsewhere, to no end
                break
        else:
            if stage == KNOWN and infos_before[r]:
                items, stage = iter(unknowns(work, r, state, mask, used)), UNKNOWN
                continue
            dead_ends += 1
            foresight = foresight if dead_ends != BLIND else work.foresight()
            if r >= stuck.r and stage != VAIN:
                stuck.note(r, state, mask, used)
            if not stack:
                return False, stuck.after(nodes)
            items, stage, state, r, mask, used, length = stack.pop()
            del path[length:]
            x, row = seq[r], rows[state]


def unknowns(work: Work, r: int, state: int, mask: int, used: int) -> list[int]:
    """The operations of unknown outcome, as ~place, that may take effect at the ``r``-th return."""
    found: list[int] = []
    free = work.info_moves(state, work.infos_before[r]) & ~used
    if free:
        same, plain = work.same_before, not (work.after or work.bounded)
        while free:
            low = free & -free
            free ^= low
            place = low.bit_length() - 1
            if plain:  # of two alike, the earlier one comes first
                if same[place] < 0 or used >> same[place] & 1:
                    found.append(~place)
            elif work.info_open(place, r, mask, used):
                found.append(~place)
    return found
