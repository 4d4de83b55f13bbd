"""Who could reach a majority of the servers when, as far as the faults of a run tell.

    cut_off(view, process) -> times (ns, sorted, apart) in which it may not have

A fault is an excuse wherever in doubt: it counts in its widest reading, with or without evidence,
and one that may touch more than its targets (a partition, a failover, a full store) excuses
everybody.

Traps.  Where the servers are not known, every fault of servers and links excuses.  Two faults on
one server are one server, and what a link lacks adds to the servers that are down.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from checkers.monitors.span import INF
from checkers.view import WORKER_KILL, WORKER_PAUSE, View
from harness.core.protocols import FaultWindow

Times = list[tuple[int, int]]
"""Half-open [begin, end), sorted by begin; joined ones are apart from each other."""

ON_SERVER = frozenset({"node-kill", "node-pause", "node-restart", "node-restart-empty"})
ON_LINK = frozenset({"sever", "jam", "mute", "deafen", "cut-reply", "latency", "slow"})
ON_LINK_OR_SERVER = frozenset({"blackhole", "backend-kill"})
ON_WORKER = frozenset(
    {WORKER_KILL, WORKER_PAUSE, "worker-starve", "worker-block-loop", "session-expire"}
)


def cut_off(view: View, process: int | str) -> Times:
    """Times in which ``process`` was hit itself, or may have reached no majority."""
    servers: dict[str, Times] = {}
    times: Times = []
    for fault in (*view.context.faults, *view.crashes):
        span = _span(fault)
        for target in fault.targets:
            place = _place(fault.kind, target, view)
            if place is None:
                times.append(span)
            elif place in view.context.servers:
                servers.setdefault(place, []).append(span)
            elif process in view.processes(target.partition("-")[0]):
                if fault.kind in ON_WORKER:
                    times.append(span)
                else:
                    servers.setdefault(place.removeprefix("link "), []).append(span)
    return joined([*times, *_too_many(servers, _spare(view))])


def cut_off_all(view: View) -> Times:
    """Times in which nobody may have reached a majority, as far as links don't matter."""
    return cut_off(view, "")  # nobody's process: whose faults of workers and links are not its own


def _place(kind: str, target: str, view: View) -> str | None:
    """What a fault takes away: a server, "link SERVER", the worker itself; None: who knows."""
    worker, _, server = target.partition("-")
    known = view.context.servers
    if kind in ON_WORKER:
        return target
    if kind in ON_SERVER | ON_LINK_OR_SERVER and target in known:
        return target
    if kind in ON_LINK | ON_LINK_OR_SERVER and server in known and worker[1:].isdigit():
        return f"link {server}"
    return None


def _span(fault: FaultWindow) -> tuple[int, int]:
    return fault.start_ns, INF if fault.end_ns is None else fault.end_ns


def _spare(view: View) -> int:
    """How many servers may be away, and the rest is a majority of all."""
    return max(0, (len(view.context.servers) - 1) // 2)


def _too_many(servers: Mapping[str, Times], spare: int) -> Times:
    """When more than ``spare`` servers are away at once."""
    changes: list[tuple[int, int]] = []
    for times in servers.values():
        for begin, end in joined(times):
            changes += [(begin, 1), (end, -1)]
    found: Times = []
    away, since = 0, 0
    for at, change in sorted(changes):
        if away <= spare < away + change:
            since = at
        elif away + change <= spare < away and since < at:
            found.append((since, at))
        away += change
    return found


def joined(times: Iterable[tuple[int, int]]) -> Times:
    """The same time in pieces that are apart; those without a length stay, unless within one."""
    found: Times = []
    for begin, end in sorted(times):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def without(begin: int, end: int, times: Sequence[tuple[int, int]]) -> Times:
    """[begin, end) less ``times``, which are apart; one without a length cuts in two."""
    found: Times = []
    first = max(0, bisect_left(times, (begin, begin)) - 1)
    for start, stop in times[first:]:
        if start >= end:
            break
        if start > begin:
            found.append((begin, start))
        begin = max(begin, stop)
    if begin < end:
        found.append((begin, end))
    return found


def touches(begin: int, end: int, times: Sequence[tuple[int, int]]) -> bool:
    """Whether any of ``times``, which are apart, touches [begin, end], its ends included."""
    after = bisect_left(times, (end + 1, 0))
    return after > 0 and times[after - 1][1] >= begin
