"""What clients believe: two of them must never be sure, at the same time, that they hold the lock.

A lock service can be without fault and this still break: a client that is paused past its TTL goes
on believing.  That is what a user wants to know, so it is judged apart from the service.

    windows(spans, ttl_ns=..., enforced=True) -> believed windows
    overlaps(windows)                          -> pairs that overlap, with how long

A window runs from the ok of an acquire to the first of: the invoke of an own release; the
completion of an own refused renew; a ``lost`` signal; the invoke of the acquire (or last ok renew)
+ TTL, if the client keeps that deadline; the death of the worker; the end of the history.
Touching is no overlap.  A second, *naive* end leaves the TTL out.

Trap: a stopped process believes but does nothing, so ``active_ns`` counts an overlap from its first
own event after it goes on (see Pause); the plain figure stays beside it.  Where there are hold
ids, a release that names the hold ends the window, also under the worker's next process number.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from checkers.models.base import ACQUIRE, LOCK_F, RELEASE, RENEW, freeze
from checkers.monitors.span import INF, Span, Verdict, by_key, judge, ms, service
from harness.core.history import Interval, Op
from harness.core.limits import OVERLAPS_MAX
from harness.core.result import Side

LOST = "lost"


class Pause(msgspec.Struct, gc=False, frozen=True):
    """A process did nothing from ``start`` to ``end`` (its first own event after it went on)."""

    process: int | str
    start: int
    end: int


class Window(msgspec.Struct, gc=False):
    """When a process believed that it held.  end: with the client's own deadline, if it keeps one;
    naive_end: without.  ops: events of its begin and end."""

    process: int | str
    hold: Any
    start: int
    end: int
    naive_end: int
    why: str
    acquire: Span
    closer: int | None
    token: int | None

    @property
    def ops(self) -> list[int]:
        return [self.acquire.event] + ([] if self.closer is None else [self.closer])


class Overlap(msgspec.Struct, gc=False):
    """Two windows that overlap from ``start`` on for ``overlap_ns``; ``naive_ns`` without the
    deadline, ``active_ns`` without the time a paused one slept."""

    first: Window
    second: Window
    start: int
    overlap_ns: int
    naive_ns: int
    active_ns: int


def windows(
    spans: Sequence[Span],
    *,
    ttl_ns: int | None = None,
    enforced: bool = False,
    lost: Iterable[Op] = (),
    deaths: Mapping[int | str, Sequence[int]] | None = None,
    end_ns: int = INF,
) -> list[Window]:
    """The believed windows of one key.  spans: its lock operations, plain failures too.

    lost: events ``f == "lost"`` of this key.  deaths: times (ns) at which a process was killed.
    end_ns: end of the history.
    """
    mine: dict[Any, list[Span]] = {}  # by hold, else by process
    for span in spans:
        mine.setdefault(span.process if span.hold is None else (span.hold,), []).append(span)
    signals: dict[Any, list[Op]] = {}
    for op in lost:
        signals.setdefault(addressee(op), []).append(op)
    found = []
    for ops in mine.values():
        for i, span in enumerate(ops):
            if span.f == ACQUIRE and span.ok:
                window = _window(span, ops, i, ttl_ns if enforced else None, enforced)
                died = sorted((deaths or {}).get(span.process, ()))
                told = signals.get((span.hold,), []) if span.hold is not None else []
                _signal(window, [*told, *signals.get(span.process, ())])
                j = bisect_left(died, window.start)
                if j < len(died):
                    _close(window, died[j], None, "killed")
                _close(window, end_ns, None, "end of history")
                found.append(window)
    found.sort(key=lambda window: (window.start, window.acquire.event))
    return found


def _close(window: Window, at: int, event: int | None, why: str) -> None:
    """Ends both readings at ``at`` if that is earlier."""
    at = max(at, window.start)
    if at < window.naive_end:
        window.naive_end = at
        if at <= window.end:
            window.closer, window.why = event, why
    window.end = min(window.end, at)


def _window(acquire: Span, ops: list[Span], i: int, ttl_ns: int | None, enforced: bool) -> Window:
    own = acquire.ttl if acquire.ttl is not None else ttl_ns
    deadline = acquire.call + own if enforced and own is not None else INF
    window = Window(
        acquire.process, acquire.hold, acquire.ret, INF, INF, "", acquire, None, acquire.token
    )
    for span in ops[i + 1 :]:
        if acquire.hold is not None and span.hold is not None and span.hold != acquire.hold:
            continue
        if span.call >= deadline:
            break
        if span.f == RELEASE:
            _close(window, span.call, span.invoke, "released")
            break
        if span.f == RENEW and span.seen is not None:
            _close(window, span.ret, span.event, "renew refused")  # a release may come before
        if span.f == RENEW and span.ok and enforced and span.ret < deadline:
            lasts = span.ttl if span.ttl is not None else own
            deadline = INF if lasts is None else span.call + lasts
    if deadline < window.end:
        window.end, window.why = max(deadline, window.start), "own deadline"
        for span in ops[i + 1 :]:
            if span.f == RELEASE and (span.hold == acquire.hold or acquire.hold is None):
                window.naive_end = min(window.naive_end, span.call)
                break
            if span.f == RENEW and span.seen is not None and span.hold == acquire.hold:
                window.naive_end = min(window.naive_end, span.ret)
    return window


def addressee(signal: Op) -> Any:
    """Whom a signal of loss is for: (hold id,) if it names one, else a process."""
    about = signal.value if isinstance(signal.value, dict) else {}
    if about.get("hold") is not None:
        return (freeze(about["hold"]),)
    return about.get("process", signal.process)


def _signal(window: Window, signals: Sequence[Op]) -> None:
    later = [op for op in signals if op.time >= window.start]
    if later:
        first = min(later, key=lambda op: op.index)
        _close(window, first.time, first.index, "lost signal")


def overlaps(
    found: list[Window],
    *,
    pauses: Sequence[Pause] = (),
    clash: Callable[[Window, Window], bool] | None = None,
) -> list[Overlap]:
    """Pairs of windows of different processes that overlap, by a sweep; OVERLAPS_MAX at most.

    clash: whether two of them must not (None: no two may).
    """
    asleep = _asleep(pauses)
    pairs: list[Overlap] = []
    for window, believing in _sweep(found):
        for _, _, other in believing:
            if other.process == window.process or len(pairs) >= OVERLAPS_MAX:
                continue
            if clash is not None and not clash(other, window):
                continue
            length = min(other.end, window.end) - window.start
            naive = min(other.naive_end, window.naive_end) - window.start
            active = length - _slept(other, window, length, asleep)
            pairs.append(Overlap(other, window, window.start, length, naive, active))
    return pairs


def crowds(found: list[Window], k: int, *, pauses: Sequence[Pause] = ()) -> list[Overlap]:
    """Windows that begin when ``k`` others are open, each with the one of them open for longest;
    ``overlap_ns``: until k are left."""
    asleep = _asleep(pauses)
    pairs: list[Overlap] = []
    for window, believing in _sweep(found):
        others = [other for _, _, other in believing]
        if len(others) >= k and len(pairs) < OVERLAPS_MAX:
            first = min(others, key=lambda other: other.start)
            inside = [*others, window]
            length = sorted(one.end for one in inside)[len(inside) - k - 1] - window.start
            naive = sorted(one.naive_end for one in inside)[len(inside) - k - 1] - window.start
            active = length - _slept(first, window, length, asleep)
            pairs.append(Overlap(first, window, window.start, length, naive, active))
    return pairs


def _sweep(found: list[Window]) -> Iterator[tuple[Window, list[tuple[int, int, Window]]]]:
    """Each window that lasts, with the heap of those that are open when it begins (look, and do
    not keep it: it changes with the next window)."""
    believing: list[tuple[int, int, Window]] = []
    for number, window in enumerate(found):
        while believing and believing[0][0] <= window.start:
            heapq.heappop(believing)
        if window.end > window.start:
            yield window, believing
            heapq.heappush(believing, (window.end, number, window))


def _asleep(pauses: Sequence[Pause]) -> dict[int | str, list[Pause]]:
    asleep: dict[int | str, list[Pause]] = {}
    for pause in pauses:
        asleep.setdefault(pause.process, []).append(pause)
    return asleep


def naive_overlaps(found: list[Window]) -> int:
    """How many pairs overlap when the clients' own deadlines are left out."""
    count = 0
    believing: list[tuple[int, int, int | str]] = []
    for number, window in enumerate(found):
        while believing and believing[0][0] <= window.start:
            heapq.heappop(believing)
        count += sum(1 for _, _, process in believing if process != window.process)
        heapq.heappush(believing, (window.naive_end, number, window.process))
    return count


def _slept(x: Window, y: Window, length: int, asleep: Mapping[int | str, list[Pause]]) -> int:
    """How much of [y.start, y.start + length] either of the two slept."""
    pauses = [p for process in (x.process, y.process) for p in asleep.get(process, ())]
    return slept(pauses, y.start, y.start + length)


def slept(pauses: Iterable[Pause], start: int, end: int) -> int:
    """How much of [start, end] lies in any of the pauses, which may overlap."""
    total, reached = 0, start
    for pause in sorted(pauses, key=lambda pause: pause.start):
        until = min(pause.end, end)
        total += max(0, until - max(pause.start, reached))
        reached = max(reached, until)
    return total


def check(
    intervals: Iterable[Interval],
    *,
    ttl_ns: int | None = None,
    enforced: bool = False,
    lost: Iterable[Op] = (),
    deaths: Mapping[int | str, Sequence[int]] | None = None,
    pauses: Sequence[Pause] = (),
    end_ns: int | None = None,
) -> Verdict:
    """Whether no two processes believed to hold one key at the same time.  Exact.

    enforced: clients stop at their own deadline (ttl_ns after the invoke).  end_ns: end of the
    history, by default its last event.
    """
    ops = list(intervals)
    if end_ns is None:
        end_ns = max((op.complete or op.invoke).time for op in ops) if ops else 0
        end_ns = max(end_ns, max((op.invoke.time for op in ops), default=0))
    signals: dict[str | None, list[Op]] = {}
    for op in lost:
        signals.setdefault(op.key, []).append(op)

    def one(spans: list[Span], verdict: Verdict) -> None:
        found = windows(
            spans,
            ttl_ns=ttl_ns,
            enforced=enforced,
            lost=signals.get(spans[0].key, ()),
            deaths=deaths,
            end_ns=end_ns,
        )
        stats = verdict.stats
        stats["windows"] = stats.get("windows", 0) + len(found)
        stats["naive_overlaps"] = stats.get("naive_overlaps", 0) + naive_overlaps(found)
        for overlap in overlaps(found, pauses=pauses):
            _report(overlap, verdict)

    return judge("belief", by_key(ops, LOCK_F, fails=True), one)


def _report(overlap: Overlap, verdict: Verdict) -> None:
    x, y = overlap.first, overlap.second
    stats = verdict.stats
    stats["overlap_ns_max"] = max(stats.get("overlap_ns_max", 0), overlap.overlap_ns)
    slept = (
        f", in {ms(overlap.active_ns)} of them neither was paused"
        if overlap.active_ns != overlap.overlap_ns
        else ""
    )
    naive = (
        f" ({ms(overlap.naive_ns)} without its deadline)"
        if overlap.naive_ns != overlap.overlap_ns
        else ""
    )
    verdict.add(
        service(
            "believed-overlap",
            x.acquire.key,
            f"{x.acquire.who} (since {ms(x.start)}) and {y.acquire.who} (since {ms(y.start)}) both "
            f"believed to hold for {ms(overlap.overlap_ns)}{slept}{naive}",
            x.ops + y.ops,
            overlap_ns=overlap.overlap_ns,
            side=Side.CLIENT,
            legal_if=f"{x.acquire.who} had stopped believing by {ms(y.start)}",
        )
    )
