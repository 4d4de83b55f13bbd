"""Random small histories for the fuzzer and the property tests.

    acts = DRAWS["lease"](random.Random(7));  intervals_of(acts)

Most histories come from a small simulation of the model (points in order, intervals drawn round
them, so that they are legal), then half are spoilt: a time, an outcome, a token, an owner changed.
Times are small, so that ties are common.  After an unknown outcome a process mostly stops and
another takes its place (the session rule), but not always.

Trap: ``Act`` is what shrinking drops and mutation changes; indices and line order are made from a
list of acts each time anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from checkers.models import make
from checkers.models.base import Model
from harness.core.history import NEMESIS, History, Interval, Op, Type

LOST = "lost"  # an act of this name is one event, a signal to the client it names


class Act(msgspec.Struct):
    """One operation.  ret: None if it never ended.  kind: ok | fail | info."""

    process: int
    f: str
    call: int
    ret: int | None
    kind: str
    sent: dict[str, Any] | list[Any] | Any = None
    got: dict[str, Any] | Any = None
    error: str | None = None


def ops_of(acts: list[Act]) -> list[Op]:
    """Events of the acts in time order, each process' in the order of its acts."""
    events = []
    for number, act in enumerate(acts):
        events.append((act.call, number, 0, act))
        if act.ret is not None:
            events.append((act.ret, number, 1, act))
    events.sort(key=lambda event: event[:3])
    found = []
    for index, (at, _, ends, act) in enumerate(events):
        if act.f == LOST:
            op = Op(index, at, NEMESIS, Type.INFO, LOST, "k", act.sent)
        elif ends:
            op = Op(index, at, act.process, act.kind, act.f, "k", act.got, act.error)
        else:
            op = Op(index, at, act.process, Type.INVOKE, act.f, "k", act.sent)
        found.append(op)
    return found


def intervals_of(acts: list[Act]) -> list[Interval]:
    """The acts as operations of one key; signals of loss stand at the end, without completion."""
    ops = ops_of(acts)
    return History(ops).intervals() + [Interval(op, None) for op in ops if op.f == LOST]


class Sim:
    """Draws a legal history: operations take effect in order, at points that move on."""

    def __init__(self, rng: random.Random, *, processes: int, slack: int = 3) -> None:
        self.rng, self.slack = rng, slack
        self.info = rng.choice((0.0, 0.1, 0.3, 0.5))
        self.now = rng.randint(0, 2)
        self.rest = rng.choice((0, 1, 1))  # 0: a process may end and begin at one instant
        self.free_at = dict.fromkeys(range(processes), 0)
        self.next_process = processes
        self.acts: list[Act] = []

    def process(self) -> int:
        """A process that can act now (or soon)."""
        process = self.rng.choice(sorted(self.free_at))
        self.now = max(self.now, self.free_at[process])
        return process

    def add(self, process: int, f: str, sent: Any, got: Any, kind: str, error: str | None) -> Act:
        """Appends an operation whose point is now; sometimes its outcome is lost."""
        call = max(self.free_at[process], self.now - self.rng.randint(0, self.slack))
        ret = self.now + self.rng.randint(0, self.slack)
        act = Act(process, f, call, ret, kind, sent, got, error)
        if kind == "ok" and self.rng.random() < self.info:
            self._lose(act)
        else:
            self.free_at[process] = ret + self.rest
        self.acts.append(act)
        self.now += self.rng.choice((0, 0, 1, 1, 2, 4))
        return act

    def _lose(self, act: Act) -> None:
        act.kind, act.got = "info", None
        if self.rng.random() < 0.5:
            act.ret = None
        if self.rng.random() < 0.85:
            del self.free_at[act.process]
            self.free_at[self.next_process] = act.call
            self.next_process += 1
        else:
            # Goes on in spite of the rule; an open operation never gets its completion then.
            act.ret = None
            self.free_at[act.process] = act.call


def _spoil(rng: random.Random, acts: list[Act]) -> list[Act]:
    """Changes a few things, mostly into something illegal."""
    for _ in range(rng.choice((0, 0, 1, 1, 2, 2, 3, 4))):
        if not acts:
            break
        act = rng.choice(acts)
        what = rng.randrange(7)
        if what == 0:
            _shift(acts, act, rng.randint(-4, 6))
        elif what == 1 and act.kind == "fail" and act.error:
            act.kind, act.error, act.got = "ok", None, act.sent
        elif what == 2 and act.kind == "ok" and act.f in ("release", "renew"):
            act.kind, act.error = "fail", "not-held"
        elif what == 3:
            acts.remove(act)
        elif what == 4 and isinstance(act.got, dict) and "token" in act.got:
            act.got = {**act.got, "token": act.got["token"] + rng.randint(-2, 2)}
        elif what == 5 and act.kind == "ok":
            act.kind, act.error, act.got = "fail", None, None
        elif what == 6 and act.ret is not None and act.kind == "ok":
            act.ret = act.call + rng.randint(0, 2)
    return _tidy(acts)


def _tidy(acts: list[Act]) -> list[Act]:
    """Leaves out what would begin before its process' last operation ended: malformed."""
    floors: dict[int, int] = {}
    kept = []
    for act in acts:
        if act.call >= floors.get(act.process, 0):
            floors[act.process] = act.call if act.ret is None else act.ret
            kept.append(act)
    return kept


def _shift(acts: list[Act], act: Act, by: int) -> None:
    """Moves an operation, and what its process did after it if that would overlap."""
    later = False
    floor = 0
    for other in acts:
        if other.process != act.process:
            continue
        later = later or other is act
        if later and (other is act or other.call < floor):
            by_now = by if other is act else floor - other.call
            other.call = max(floor, other.call + by_now)
            if other.ret is not None:
                other.ret = max(other.call, other.ret + by_now)
        floor = max(floor, other.call if other.ret is None else other.ret)


def _lock(
    rng: random.Random,
    model: Model,
    *,
    holds: bool,
    busy: bool = False,
    renew: bool = True,
    tokens: bool = False,
    reentrant: bool = False,
    owners: bool = False,
    ttl: int | None = None,
    weights: tuple[int, ...] = (),
    modes: bool = False,
) -> list[Act]:
    """Histories of a lock-like model."""
    sim = Sim(rng, processes=rng.randint(2, 4))
    state = model.init
    token = 0
    have: list[dict[str, Any]] = []  # what somebody may hold, as the value that names it
    for number in range(rng.randint(2, 9)):
        process = sim.process()
        mine = [value for value in have if value["by"] == process]
        if not holds and not mine:
            mine = [value for value in have if rng.random() < 0.2 and value["owner"] is None]
        wants = not mine or (reentrant and rng.random() < 0.4) or rng.random() < 0.15
        if wants and holds and have and rng.random() < 0.3:
            mine, wants = [rng.choice(have)], False  # another process ends a lost one's hold
        sent: dict[str, Any] = {}
        if wants:
            f = "acquire"
            token += rng.choice((1, 1, 1, 2))
            if holds:
                sent["hold"] = f"h{number}"
            if owners:
                sent["owner"] = f"o{process % 2 if rng.random() < 0.1 else process}"
            if weights:
                sent["permits"] = rng.choice(weights)
            if modes:
                sent["mode"] = rng.choice(("read", "read", "write"))
            if ttl is not None and rng.random() < 0.3:
                sent["ttl_ns"] = ttl + rng.choice((-4, 3))
        else:
            value = rng.choice(mine)
            f = "renew" if renew and rng.random() < 0.3 else "release"
            if modes and rng.random() < 0.3:
                f = rng.choice(("upgrade", "downgrade"))
            sent = {name: value[name] for name in ("hold", "owner") if value.get(name)}
            if weights and rng.random() < 0.5:
                sent["permits"] = value.get("permits", 1)
            if tokens and rng.random() < 0.2 and "token" in value:
                sent["token"] = value["token"]
        if ttl is not None and rng.random() < 0.25:
            sim.now += ttl - rng.randint(0, 3)
        state = _act(sim, model, state, process, f, sent, have, token if tokens else None, busy)
    return _spoil(rng, sim.acts)


def _act(
    sim: Sim,
    model: Model,
    state: Any,
    process: int,
    f: str,
    sent: dict[str, Any],
    have: list[dict[str, Any]],
    token: int | None,
    busy: bool,
) -> Any:
    """Takes one step; a refusal becomes busy or not-held, as the model has it."""
    got = dict(sent)
    if f == "acquire" and token is not None:
        got["token"] = token
    now = sim.now
    done = Op(1, now, process, Type.OK, f, "k", got)
    op = Interval(Op(0, now, process, Type.INVOKE, f, "k", sent), done)
    after = model.step(state, model.prepare(op))
    if after is None:
        error = "not-held" if f != "acquire" else "busy" if busy else None
        sim.add(process, f, sent, None, "fail", error)
        return state
    act = sim.add(process, f, sent, got, "ok", None)
    if f == "acquire":
        have.append({"by": process, "owner": sent.get("owner"), **got})
    elif f == "release" and sim.rng.random() < 0.9:
        have[:] = [value for value in have if not _same(value, sent, process)]
    if act.kind == "info" and sim.rng.random() < 0.3:
        return state  # it never happened
    return after


def _same(value: dict[str, Any], sent: dict[str, Any], process: int) -> bool:
    if "hold" in sent:
        return bool(value.get("hold") == sent["hold"])
    return bool(value["by"] == process)


def _cas(rng: random.Random) -> list[Act]:
    """Reads, writes and CAS with (mostly) unique values."""
    sim = Sim(rng, processes=rng.randint(2, 4))
    state: Any = None
    known: list[Any] = [None]
    fresh = 0
    for _ in range(rng.randint(2, 9)):
        process = sim.process()
        f = rng.choice(("read", "write", "cas", "cas"))
        value = fresh = fresh + 1
        if rng.random() < 0.03:
            value = rng.choice(known[1:] or [value])
        if f == "read":
            seen = state if rng.random() < 0.9 else rng.choice(known)
            sim.add(process, f, None, seen, "ok", None)
            continue
        known.append(value)
        if f == "write":
            act = sim.add(process, f, value, value, "ok", None)
        else:
            old = state if rng.random() < 0.85 else rng.choice(known)
            good = old == state
            error = None if good or rng.random() < 0.8 else "mismatch"
            act = sim.add(process, f, [old, value], None, "ok" if good else "fail", error)
            if not good:
                continue
        if act.kind != "info" or rng.random() < 0.7:
            state = value
    return _spoil(rng, sim.acts)


def _store(rng: random.Random) -> list[Act]:
    """Writes with tokens at a fenced resource."""
    sim = Sim(rng, processes=rng.randint(2, 4))
    greatest = -1
    for _ in range(rng.randint(2, 9)):
        process = sim.process()
        token = max(0, greatest + rng.choice((-2, -1, 0, 0, 1, 1, 2)))
        sent = {"token": token}
        if token < greatest:
            error = "stale" if rng.random() < 0.9 else None
            sim.add(process, "write", sent, sent, "fail", error)
            continue
        act = sim.add(process, "write", sent, sent, "ok", None)
        if act.kind != "info" or rng.random() < 0.7:
            greatest = token
    return _spoil_store(rng, _spoil(rng, sim.acts))


def _spoil_store(rng: random.Random, acts: list[Act]) -> list[Act]:
    if acts and rng.random() < 0.2:
        act = rng.choice(acts)
        if act.kind == "ok":
            act.kind, act.error = "fail", "stale"
        elif act.kind == "fail":
            act.kind, act.error = "ok", None
    return acts


def _anonymous(rng: random.Random) -> list[Act]:
    """Acquires and releases by anybody, noise more than sense."""
    sim = Sim(rng, processes=rng.randint(2, 5))
    used = 0
    for _ in range(rng.randint(2, 9)):
        f = "acquire" if rng.random() < (0.75 if used == 0 else 0.5 if used == 1 else 0.25) else ""
        act = sim.add(sim.process(), f or "release", {}, {}, "ok", None)
        if act.kind != "info" or rng.random() < 0.7:
            used = min(2, used + 1) if f else max(0, used - 1)
    return _spoil(rng, sim.acts)


def _belief(rng: random.Random) -> list[Act]:
    """Leases, often shorter than clients believe; some clients are told that they lost theirs."""
    acts = _drawn("lease", holds=rng.random() < 0.6, ttl=rng.choice((10, 5, 5)))(rng)
    for act in rng.sample(acts, min(len(acts), rng.choice((0, 0, 1, 2)))):
        about: dict[str, Any] = {"process": act.process}
        if isinstance(act.sent, dict) and "hold" in act.sent:
            about["hold"] = act.sent["hold"]
        acts.append(Act(-1, LOST, act.call + rng.randint(0, 9), None, "info", about))
    return acts


def _drawn(name: str, **options: Any) -> Callable[[random.Random], list[Act]]:
    def draw(rng: random.Random) -> list[Act]:
        model_options: dict[str, Any] = {}
        if name == "semaphore":
            model_options["k"] = 2
        if name == "lease":
            model_options["ttl_ns"] = options["ttl"]
        return _lock(rng, make(name, **model_options), **options)

    return draw


def _either(
    *draws: Callable[[random.Random], list[Act]],
) -> Callable[[random.Random], list[Act]]:
    return lambda rng: rng.choice(draws)(rng)


DRAWS: dict[str, Callable[[random.Random], list[Act]]] = {
    "mutex": _drawn("mutex", holds=True),
    "mutex-owners": _either(
        _drawn("mutex", holds=False), _drawn("mutex", holds=False, owners=True)
    ),
    "mutex-busy": _either(
        _drawn("mutex", holds=True, busy=True), _drawn("mutex", holds=False, busy=True)
    ),
    "fenced": _either(
        _drawn("fenced", holds=True, tokens=True), _drawn("fenced", holds=False, tokens=True)
    ),
    "reentrant": _either(
        _drawn("reentrant", holds=False, reentrant=True),
        _drawn("reentrant", holds=True, reentrant=True, owners=True),
    ),
    "lease": _either(_drawn("lease", holds=True, ttl=10), _drawn("lease", holds=False, ttl=10)),
    "semaphore": _either(
        _drawn("semaphore", holds=True),
        _drawn("semaphore", holds=True, weights=(1, 2)),
        _drawn("semaphore", holds=False, reentrant=True),
        _drawn("semaphore", holds=False, reentrant=True, weights=(1, 1, 2)),
    ),
    "rwlock": _either(
        _drawn("rwlock", holds=True, modes=True),
        _drawn("rwlock", holds=False, modes=True, reentrant=True),
    ),
    "cas": _cas,
    "store": _store,
    "anonymous": _anonymous,
    "belief": _belief,
}
