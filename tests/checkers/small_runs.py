"""Small random runs for comparisons of run checkers with brute force; Hypothesis shrinks them.

    @given(run=runs(keys=2))
    def test(run: SmallRun) -> None: history = run.history()

Two kinds: *played*, in which a server grants and refuses rightly (holders release, renew, give up,
die), and *loose* ones, in which every worker has a time line of its own with answers at will.  Then
a few things are changed: a time, an answer, an operation left out.  Times are whole units of
``unit_ns``, small, so that many of them are equal.

After an unknown outcome a worker goes on under its next process number, as in every run.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from harness.core.history import NEMESIS, Header, History, Op
from harness.core.protocols import FaultWindow

WORKERS = 3
ANSWERS = "ok ok ok ok fail info info-open"
REFUSALS = {"acquire": "busy", "release": "not-held", "renew": "not-held"}


def between(low: int, high: int) -> st.SearchStrategy[int]:
    """Each equally often, which ``st.integers`` does not promise: it loves the ends."""
    return st.sampled_from(range(low, high + 1))


class Act(msgspec.Struct):
    """One operation; ret is None if it never ended.  kind: ok | fail | info; error: its word."""

    process: int
    f: str
    key: str
    hold: str
    call: int
    ret: int | None
    kind: str = "ok"
    error: str | None = None
    ttl: int | None = None
    mode: str | None = None  # read | write


class SmallRun(msgspec.Struct):
    """Operations, signals of loss (time, process) and faults, in units."""

    acts: list[Act]
    lost: list[tuple[int, int]] = []
    faults: list[tuple[str, str, int, int | None]] = []
    unit_ns: int = 1_000_000

    def history(self) -> History:
        """As a history; what one process does never overlaps, so that it is well formed."""
        events: list[tuple[int, int, int, dict[str, Any]]] = []
        for number, act in enumerate(self.acts):
            value: dict[str, Any] = {"hold": act.hold}
            if act.ttl is not None:
                value["ttl_ns"] = act.ttl * self.unit_ns
            if act.mode is not None:
                value["mode"] = act.mode
            base = {"process": act.process, "f": act.f, "key": act.key, "value": value}
            events.append((act.call, number, 0, {**base, "type": "invoke"}))
            if act.ret is not None:
                done = {**base, "type": act.kind, "error": act.error}
                events.append((act.ret, number, 1, done))
        for at, process in self.lost:
            fields = {"process": NEMESIS, "f": "lost", "key": "k0", "type": "info"}
            events.append((at, len(self.acts), 2, {**fields, "value": {"process": process}}))
        events.sort(key=lambda event: event[:3])
        ops = [Op(i, event[0] * self.unit_ns, **event[3]) for i, event in enumerate(events)]
        return History(ops, Header())

    def windows(self) -> list[FaultWindow]:
        """The faults, each with evidence."""
        return [
            FaultWindow(
                id=number,
                kind=kind,
                targets=[target],
                start_ns=start * self.unit_ns,
                end_ns=None if end is None else end * self.unit_ns,
                bit=True,
                healed=end is not None,
                on_ns=start * self.unit_ns,
                off_ns=None if end is None else end * self.unit_ns,
            )
            for number, (kind, target, start, end) in enumerate(self.faults)
        ]


class Worker:
    """Who acts next: its process number, when it is free, what it holds (key -> hold)."""

    def __init__(self, index: int) -> None:
        self.process = index
        self.free = 0
        self.holds: dict[str, str] = {}

    def unsure(self) -> None:
        """Goes on as another process, without what it held."""
        self.process += WORKERS
        self.holds = {}


@st.composite
def runs(
    draw: st.DrawFn,
    *,
    keys: int = 1,
    ops: tuple[int, int] = (5, 11),
    fault_kinds: str = "",
    answers: str = ANSWERS,
) -> SmallRun:
    """A played or a loose run, changed here and there.

    fault_kinds, answers (of a loose run): names with blanks between, each equally often.
    """
    names, count = [f"k{number}" for number in range(keys)], draw(between(*ops))
    if draw(between(0, 2)):
        acts = _loose(draw, names, count, answers.split())
    else:
        acts = _played(draw, names, count)
    for _ in range(draw(between(0, 2))):
        _change(draw, acts)
    lost = draw(st.lists(st.tuples(between(0, 30), between(0, 5)), max_size=1))
    faults = []
    for _ in range(draw(between(0, 3)) if fault_kinds else 0):
        kind = draw(st.sampled_from(fault_kinds.split()))
        faults.append(_fault(draw, kind, acts))
    return SmallRun(acts, lost, faults)


@st.composite
def tangles(draw: st.DrawFn) -> SmallRun:
    """Every worker has a key and asks for another's, again and again; one may be killed."""
    workers = [Worker(index) for index in range(WORKERS)]
    keys = [f"k{worker.process}" for worker in workers]
    acts = [Act(index, "acquire", key, f"g{index}", 0, 1) for index, key in enumerate(keys)]
    for number in range(draw(between(2, 6))):
        worker = workers[number % WORKERS]
        key = draw(st.sampled_from([key for key in keys if key != keys[number % WORKERS]]))
        call = max(worker.free, 1) + draw(between(0, 4))
        kind = draw(st.sampled_from(["ok", "fail", "fail", "info", "info-open"]))
        times = (call, call + draw(between(2, 20)))
        acts.append(_act(draw, worker, "acquire", key, f"h{number}", times, kind))
        if kind in ("ok", "fail") and draw(st.booleans()):
            first = next(act for act in acts if act.process == worker.process)
            times = (worker.free, worker.free + 1)
            f = draw(st.sampled_from(["release", "renew"]))
            acts.append(_act(draw, worker, f, first.key, first.hold, times, "ok"))
    for _ in range(draw(between(0, 1))):
        _change(draw, acts)
    faults = [_fault(draw, "worker-kill", acts) for _ in range(draw(between(0, 1)))]
    return SmallRun(acts, [], faults)


def _fault(draw: st.DrawFn, kind: str, acts: list[Act]) -> tuple[str, str, int, int | None]:
    """A fault of a server, or of a worker: mostly of one that was just granted something."""
    start, worker = draw(between(0, 25)), draw(between(0, WORKERS - 1))
    held = [act for act in acts if act.f == "acquire" and act.kind == "ok"]
    if held and draw(between(0, 3)):
        act = draw(st.sampled_from(held))
        start, worker = (act.ret or 0) + draw(between(0, 4)), act.process % WORKERS
    end = draw(st.one_of(st.none(), between(start + 1, start + 20)))
    return kind, f"w{worker}" if kind.startswith("worker") else "redis", start, end


def _loose(draw: st.DrawFn, keys: list[str], count: int, answers: list[str]) -> list[Act]:
    """Time lines of their own: any operation, any answer."""
    workers = [Worker(index) for index in range(WORKERS)]
    acts: list[Act] = []
    for number in range(count):
        worker, key = draw(st.sampled_from(workers)), draw(st.sampled_from(keys))
        known = [act for act in acts if act.f == "acquire" and act.process == worker.process]
        f = draw(st.sampled_from(["acquire", "acquire", "release", "renew"]))
        f = f if known else "acquire"
        hold = f"h{number}"
        if f != "acquire":
            about = draw(st.sampled_from(known))
            key, hold = about.key, about.hold
        call = worker.free + draw(between(0, 6))
        ret = call + draw(between(0, 20 if f == "acquire" else 6))
        kind = draw(st.sampled_from(answers))
        acts.append(_act(draw, worker, f, key, hold, (call, ret), kind))
    return acts


def _played(draw: st.DrawFn, keys: list[str], count: int) -> list[Act]:
    """A server that grants rightly, with leases of 8 units; operations take effect as they end."""
    workers = [Worker(index) for index in range(WORKERS)]
    owner: dict[str, tuple[str, int]] = {}  # key -> (hold, end of its lease)
    acts: list[Act] = []
    now = 0
    for number in range(count):
        now += draw(between(0, 3))
        worker = draw(st.sampled_from(workers))
        now = max(now, worker.free)
        free = [key for key in keys if key not in worker.holds]
        if worker.holds and (not free or draw(st.booleans())):
            key = draw(st.sampled_from(sorted(worker.holds)))
            hold, f = worker.holds[key], draw(st.sampled_from(["release", "release", "renew"]))
            mine = owner.get(key, ("", 0))[0] == hold
            if mine and f == "renew":
                owner[key] = (hold, now + 8)
            elif mine:
                del owner[key]
        else:
            key, hold, f = draw(st.sampled_from(free)), f"h{number}", "acquire"
            mine = key not in owner or owner[key][1] <= now
            if mine:
                owner[key] = (hold, now + 8)
        call = max(worker.free, now - draw(between(0, 9)))
        kind = "ok" if mine else "fail"
        if draw(between(0, 5)) == 0:
            kind = draw(st.sampled_from(["info", "info-open"]))
        acts.append(_act(draw, worker, f, key, hold, (call, now + draw(between(0, 2))), kind))
        if f == "release":
            worker.holds.pop(key, None)
        elif f == "acquire" and kind == "ok":
            worker.holds[key] = hold
    return acts


def _act(
    draw: st.DrawFn,
    worker: Worker,
    f: str,
    key: str,
    hold: str,
    times: tuple[int, int],
    kind: str,
) -> Act:
    error = None
    if kind == "fail":
        error = draw(st.sampled_from([REFUSALS[f], REFUSALS[f], "no connection"]))
    ttl = draw(st.one_of(st.none(), st.none(), between(1, 12))) if f != "release" else None
    ret = None if kind == "info-open" else times[1]
    act = Act(worker.process, f, key, hold, times[0], ret, kind.removesuffix("-open"), error, ttl)
    worker.free = times[1]
    if kind.startswith("info"):
        worker.unsure()
    return act


def _change(draw: st.DrawFn, acts: list[Act]) -> None:
    """Something else than what was: kept well formed, for no process overlaps itself."""
    if not acts:
        return
    act = draw(st.sampled_from(acts))
    what = draw(st.sampled_from(["drop", "longer", "shorter", "turn", "lend"]))
    if what == "drop":
        acts.remove(act)
    elif what == "lend" and act.f != "acquire":
        act.process += 10 * WORKERS  # of the same worker, and with nothing else to do
    elif what == "longer":
        act.call = max(act.call - draw(between(0, 5)), _before(acts, act))
    elif what == "shorter" and act.ret is not None:
        act.ret = max(act.call, act.ret - draw(between(0, 5)))
    elif what == "turn" and act.kind in ("ok", "fail"):
        turned = act.kind == "ok"
        act.kind, act.error = ("fail", REFUSALS[act.f]) if turned else ("ok", None)


def _before(acts: list[Act], act: Act) -> int:
    """When the process' last operation before ``act`` was over."""
    earlier = acts[: next(i for i, other in enumerate(acts) if other is act)]
    return max((a.ret or a.call for a in earlier if a.process == act.process), default=0)
