"""Brute force for the checkers of runs: what they say, worked out moment by moment.

Each function looks at every unit of time by itself and asks plain questions of the list of
operations: who holds now, who waits now, who believes now.  No sorting, no sweeping, no sharing of
code with ``checkers`` beyond the history itself.  A moment ``x`` stands for the time between the
units ``x`` and ``x + 1``.

    circles(run, ttl=8)            -> the circles that stood at some moment
    losses(run, ttl=8)             -> (hold, gone, lag, awake) of beliefs in locks that were gone
    takeovers(run, ttl, bound)     -> what became of the locks of holders that were hit
    alone(run, ttl, ...)           -> refusals with nobody who can have had the lock
    leaks(run, k, ttl, ...)        -> the same of k permits, and those who waited beside a free one
    dishonest(run)                 -> answers "ok" that cannot be
    from_nowhere(run, servers)     -> answers of clients that reached no server
    longest_vain(run, servers, pause) -> how long a free lock was asked for and not granted

The costs are what they are (moments times operations, all choices of waits): small runs only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from tests.checkers.small_runs import WORKERS, Act, SmallRun

OBSERVED = ("busy", "not-held")
FOREVER = 10**6


def end_of(run: SmallRun) -> int:
    """Time of the last event."""
    times = [time for act in run.acts for time in (act.call, act.ret) if time is not None]
    return max([*times, *(at for at, _ in run.lost)], default=0)


def deaths(run: SmallRun, process: int) -> list[int]:
    """When the worker of ``process`` was killed."""
    return [
        start
        for kind, target, start, _ in run.faults
        if kind == "worker-kill" and target == f"w{process % WORKERS}"
    ]


def dead_by(run: SmallRun, act: Act, since: int, x: int) -> bool:
    return any(since <= at <= x for at in deaths(run, act.process))


def later(run: SmallRun, act: Act) -> list[Act]:
    """Operations of the hold that ``act`` began."""
    return [other for other in run.acts if other.hold == act.hold and other is not act]


def granted(run: SmallRun) -> list[Act]:
    return [act for act in run.acts if act.f == "acquire" and act.kind == "ok"]


def waits(run: SmallRun, act: Act, x: int) -> bool:
    """Whether ``act`` is an acquire that its client waits for at moment ``x``."""
    if act.f != "acquire" or act.call > x or dead_by(run, act, act.call, x):
        return False
    return act.ret is None or x < act.ret


# Deadlock


def relied_on(run: SmallRun, act: Act, x: int, ttl: int | None) -> bool:
    """Whether the client may still rely on the grant ``act`` at moment ``x``."""
    assert act.ret is not None
    if x < act.ret or dead_by(run, act, act.ret, x):
        return False
    if any(other.f == "release" and other.call <= x for other in later(run, act)):
        return False
    if ttl is None:
        return True
    own = act.ttl if act.ttl is not None else ttl
    end = act.ret + own
    for other in sorted(later(run, act), key=lambda other: other.call):
        if other.f == "renew" and other.kind == "ok" and other.call < end:
            assert other.ret is not None
            end = max(end, other.ret + (other.ttl if other.ttl is not None else own))
    return x < end


def holder_at(run: SmallRun, key: str, x: int, ttl: int | None) -> Act | None:
    """Whose the key is: of the last grant, if its client may still rely on it."""
    past = [act for act in granted(run) if act.key == key and (act.ret or 0) <= x]
    if not past:
        return None
    newest = max(past, key=lambda act: (act.ret or 0, run.acts.index(act)))
    return newest if relied_on(run, newest, x, ttl) else None


def circles(run: SmallRun, ttl: int | None) -> dict[frozenset[tuple[str, str]], tuple[int, int]]:
    """Circles as sets of (hold waited for, hold had), each with its first and last moment."""
    found: dict[frozenset[tuple[str, str]], tuple[int, int]] = {}
    for x in range(end_of(run) + 1):
        pending = [act for act in run.acts if waits(run, act, x)]
        for size in range(2, len(pending) + 1):
            for chosen in permutations(pending, size):
                edges = []
                for wait, following in zip(chosen, (*chosen[1:], chosen[0]), strict=True):
                    owner = holder_at(run, wait.key, x, ttl)
                    if owner is None or owner.process != following.process:
                        break
                    edges.append((wait.hold, owner.hold))
                else:
                    if len({wait.process for wait in chosen}) == size:
                        first, _ = found.get(frozenset(edges), (x, x))
                        found[frozenset(edges)] = (first, x)
    return found


def waits_while_holding(run: SmallRun, ttl: int | None) -> int:
    """How often an acquire was asked for while its client had another key."""
    return sum(
        any(
            act.process == other.process
            and act.key != other.key
            and relied_on(run, other, act.call, ttl)
            and (other.ret or 0) <= act.call
            for other in granted(run)
        )
        for act in run.acts
        if act.f == "acquire"
    )


# Belief


def believes(run: SmallRun, act: Act, x: int) -> bool:
    """Whether the client of the grant ``act`` believes that it holds, at moment ``x``."""
    assert act.ret is not None
    if not act.ret <= x < end_of(run) or dead_by(run, act, act.ret, x):
        return False
    for other in later(run, act):
        if other.f == "release" and other.call <= x:
            return False
        refused = other.f == "renew" and other.kind == "fail" and other.ret is not None
        if refused and (other.ret or 0) <= x:
            return False
    return not any(
        (process, act.key) == (act.process, "k0") and act.ret <= at <= x for at, process in run.lost
    )


def lease_over(run: SmallRun, act: Act, x: int, ttl: int | None) -> bool:
    """Whether the lease of ``act`` was over for certain at moment ``x``."""
    own = act.ttl if act.ttl is not None else ttl
    if own is None or act.ret is None:
        return False
    ends = [act.ret + own]
    for other in later(run, act):
        if other.f != "renew" or other.kind == "fail" or not believes(run, act, other.call):
            continue
        if other.kind == "info":
            return False  # it may have come at any time
        ends.append((other.ret or 0) + (other.ttl if other.ttl is not None else own))
    return x >= max(ends)


def anothers(run: SmallRun, act: Act, x: int) -> bool:
    """Whether somebody else surely had the lock since the grant ``act``, by moment ``x``."""
    for other in granted(run):
        if other.process == act.process or other.key != act.key:
            continue
        if not (act.ret or 0) < (other.ret or 0) <= x:
            continue
        confirmed = any(
            more.f in ("renew", "release") and more.kind == "ok" and more.call >= (other.ret or 0)
            for more in later(run, other)
        )
        if other.call >= (act.ret or 0) or confirmed:
            return True
    return False


def losses(
    run: SmallRun, ttl: int | None, asleep: dict[int, list[tuple[int, int]]]
) -> set[tuple[str, int, int, int]]:
    """(hold, gone, lag, awake) of each belief in a lock that was gone.  asleep: by process."""
    found = set()
    for act in granted(run):
        gone = [
            x
            for x in range(end_of(run))
            if believes(run, act, x)
            and ((ttl is not None and lease_over(run, act, x, ttl)) or anothers(run, act, x))
        ]
        sleeps = asleep.get(act.process, [])
        awake = [x for x in gone if not any(start <= x < end for start, end in sleeps)]
        if gone:
            found.add((act.hold, gone[0], len(gone), len(awake)))
    return found


# Recovery


def takeovers(run: SmallRun, ttl: int | None, bound: int) -> list[tuple[str, int | None, bool]]:
    """(hold, how long until the next grant, too late) for each holder that was hit."""
    found = []
    for number, (kind, target, start, _) in enumerate(run.faults):
        for act in granted(run):
            if target != f"w{act.process % WORKERS}" or not _held_at(run, act, start):
                continue
            others = [o for o in run.acts if o.process != act.process and o.key == act.key]
            after = [o.ret for o in granted(run) if o in others and (o.ret or 0) > start]
            following = min((ret for ret in after if ret is not None), default=None)
            limit = end_of(run) if following is None else following
            longest = length = 0
            for x in range(start, limit):
                asked = any(waits(run, other, x) for other in others)
                in_the_way = any(
                    begin <= x and (end is None or x < end)
                    for place, (_, _, begin, end) in enumerate(run.faults)
                    if place != number
                )
                free = ttl is None or _over_for_the_dead(run, act, start, x, ttl)
                length = length + 1 if asked and free and not in_the_way else 0
                longest = max(longest, length)
            took = None if following is None else following - start
            found.append((act.hold, took, kind == "worker-kill" and longest > bound))
    return found


def _held_at(run: SmallRun, act: Act, at: int) -> bool:
    """Whether its client believed in the grant right up to ``at``."""
    assert act.ret is not None
    if act.ret > at or at > end_of(run):
        return False
    return at == act.ret or believes(run, act, at - 1)


def _over_for_the_dead(run: SmallRun, act: Act, death: int, x: int, ttl: int) -> bool:
    assert act.ret is not None
    own = act.ttl if act.ttl is not None else ttl
    ends = [act.ret + own]
    for other in later(run, act):
        if other.f == "renew" and other.kind != "fail":
            answered = other.kind == "ok" and other.ret is not None
            known = (other.ret or 0) if answered else max(other.call, death)
            ends.append(known + (other.ttl if other.ttl is not None else own))
    return x >= max(ends)


# Orphans


def stays(run: SmallRun, lasts: int | None, slack: int, ttl: bool) -> Iterator[tuple[Act, int]]:
    """Each attempt with the last time at which something of it may be at the server."""
    for act in run.acts:
        if act.f != "acquire":
            continue
        if act.kind == "fail":
            yield act, act.ret or 0
            continue
        ends = [
            other.ret
            for other in later(run, act)
            if (other.f == "release" and other.kind == "ok") or other.error == "not-held"
        ]
        if ends:
            yield act, next(end for end in ends if end is not None)
            continue
        own = act.ttl if ttl and act.ttl is not None else lasts
        if own is None:
            yield act, FOREVER
            continue
        over = 0
        for other in [act, *later(run, act)]:
            if other.f != "release":
                known = end_of(run) if other.ret is None else other.ret
                known = max([known, *deaths(run, other.process)])
                more = own if not ttl or other.ttl is None else max(own, other.ttl)
                over = max(over, known + more + slack)
        for _ in run.faults:  # each may bring another within reach
            for _, _, start, end in run.faults:
                if start <= over:
                    over = max(over, FOREVER if end is None else end + own + slack)
        yield act, over


def alone(
    run: SmallRun, lasts: int | None, *, slack: int, patience: int, ttl: bool = True
) -> set[str]:
    """Holds that were refused although nobody can have had the lock."""
    found = set()
    places = list(stays(run, lasts, slack, ttl))
    for act in run.acts:
        if act.f != "acquire" or act.error != "busy" or act.ret is None:
            continue
        others = [(o, end) for o, end in places if o.hold != act.hold and o.key == act.key]
        others = [(o, end) for o, end in others if not o.mode == act.mode == "read"]
        there = [(o.call, end) for o, end in others]
        if not any(a <= x <= b for x in range(act.call, act.ret + 1) for a, b in there):
            found.add(act.hold)
        held = [(o.call, end) for o, end in others if o.kind != "fail"]
        for since in range(act.call, act.ret - patience + 1):
            quiet = not any(
                start <= act.ret and (end is None or end > since) for _, _, start, end in run.faults
            )
            empty = not any(a <= act.ret and b > since for a, b in held)
            if quiet and empty:
                found.add(act.hold)
    return found


def leaks(
    run: SmallRun,
    k: int,
    lasts: int | None,
    *,
    slack: int,
    patience: int,
    bound: int | None,
    ttl: bool = True,
) -> set[str]:
    """Holds that got no permit, or got it late, although one of the k was left."""
    found = set()
    places = list(stays(run, lasts, slack, ttl))
    for act in run.acts:
        busy = act.error == "busy" and act.ret is not None
        if act.f != "acquire" or not (busy or act.kind == "ok" or act.ret is None):
            continue
        others = [(o, end) for o, end in places if o.hold != act.hold and o.key == act.key]
        until = end_of(run) if act.ret is None else act.ret
        if busy and not any(
            sum(o.call <= x <= end for o, end in others) >= k for x in range(act.call, until + 1)
        ):
            found.add(act.hold)
        if not busy and bound is None:
            continue
        longest = length = 0
        for x in range(act.call, until):
            held = sum(o.call <= x < end for o, end in others if o.kind != "fail")
            quiet = not any(a <= x and (b is None or x < b) for _, _, a, b in run.faults)
            gone = not busy and not waits(run, act, x)
            length = length + 1 if held < k and quiet and not gone else 0
            longest = max(longest, length)
        if longest >= (patience if busy else max(patience, bound or 0)):
            found.add(act.hold)
    return found


# Honesty


def dishonest(run: SmallRun) -> set[tuple[str, int]]:
    """(kind, which act) of releases and renewals that were answered ok and cannot be."""
    found = set()
    answers = [a for a in run.acts if a.f != "acquire" and a.kind == "ok" and a.ret is not None]
    for act in answers:
        number = next(n for n, other in enumerate(run.acts) if other is act)
        for other in answers:
            again = other.hold == act.hold and other.f == "release"
            if again and other is not act and (other.ret or 0) < act.call:
                found.add(("answered-ok-twice", number))
        for grant in granted(run):
            if grant.hold == act.hold or grant.key != act.key or (grant.ret or 0) >= act.call:
                continue
            let_go = [o.call for o in later(run, grant) if o.f == "release"]
            if any(
                witness.hold == grant.hold
                and witness.call > (act.ret or 0)
                and all(witness.call <= call for call in let_go)
                for witness in answers
            ):
                found.add(("answered-ok-without-lock", number))
    return found


# Errors


def from_nowhere(run: SmallRun, servers: tuple[str, ...]) -> tuple[int, int]:
    """How many operations of clients that were cut off; how many of them have an answer that only
    a server can give."""
    judged = wrong = 0
    for act in run.acts:
        if act.ret is None or act.kind == "info":
            continue
        if not all(_cut(run, server, act) for server in servers):
            continue
        judged += 1
        wrong += act.kind == "ok" or act.error in OBSERVED
    return judged, wrong


def _cut(run: SmallRun, server: str, act: Act) -> bool:
    """Whether one fault kept the client from this server all through ``act``."""
    link = f"w{act.process % WORKERS}-{server}"
    for kind, target, start, end in run.faults:
        on_server = kind in ("node-kill", "node-pause") and target == server
        on_link = kind in ("sever", "jam", "blackhole") and target == link
        within = end is not None and start < act.call and (act.ret or 0) < end
        if (on_server or on_link) and within:
            return True
    return False


# Availability


def longest_vain(run: SmallRun, servers: tuple[str, ...], pause: int) -> dict[str, int]:
    """Per key the longest time in which it was free and asked for by clients that reached a
    majority, pauses up to ``pause`` between two attempts included, and nobody was granted it."""
    found = {}
    for key in {act.key for act in run.acts}:
        acquires = [act for act in run.acts if act.f == "acquire" and act.key == key]
        grants = [act for act in acquires if act.kind == "ok"]
        longest = length = gap = 0
        for x in range(end_of(run)):
            if any(act.ret == x for act in grants):
                length = gap = 0
            held = any(believes(run, act, x) for act in grants)
            if held or _away(run, servers, x) is None:
                length = gap = 0
            elif any(waits(run, act, x) and _reaches(run, servers, act, x) for act in acquires):
                length, gap = (length + gap if length else 0) + 1, 0
            else:
                gap += 1
                if gap > pause:
                    length = 0
            longest = max(longest, length)
        found[key] = longest
    return found


def _away(run: SmallRun, servers: tuple[str, ...], x: int) -> set[str] | None:
    """Servers that are away at moment ``x``; None if it may be a majority, or nobody knows."""
    away = set()
    for kind, target, start, end in run.faults:
        if start <= x and (end is None or x < end):
            if kind == "partition":
                return None
            if target in servers:
                away.add(target)
    return away if 2 * (len(servers) - len(away)) > len(servers) else None


def _reaches(run: SmallRun, servers: tuple[str, ...], act: Act, x: int) -> bool:
    away = _away(run, servers, x) or set()
    for _, target, start, end in run.faults:
        worker, _, server = target.partition("-")
        if worker == f"w{act.process % WORKERS}" and start <= x and (end is None or x < end):
            if not server:
                return False
            away.add(server)
    return 2 * (len(servers) - len(away)) > len(servers)
