"""What each model asks of one key, and who answers: the fast monitor, else the general engine.

    prop = properties("semaphore", Settings(k=3))[0]
    ask_monitor(prop, "k0", intervals)                                  ->  Result
    ask_engine(prop, "k0", intervals, engine="auto", budget_s=10.0, why="...")

A monitor that saw a violation is right; one that saw none is right if its assumptions held, which
it checks.  Only where they failed the general engine is asked, with a budget.  The result says who
decided and why: ``stats["decided_by"]``, ``["why"]``, ``["exact"]``.

Trap: the answers *busy* are left out unless ``judge_busy`` is on.  A try-lock that is refused for
no good reason is a nuisance; as an observation it would make such a history a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from checkers.engine import check as engine_check
from checkers.engine import frontier, wgl
from checkers.engine.budget import Budget
from checkers.engine.work import Work
from checkers.explain import missing
from checkers.models import make
from checkers.models.base import BUSY, LOCK_F, Model, determined
from checkers.models.lease import EXPIRE
from checkers.models.register import CAS, KV_F, READ, WRITE
from checkers.models.shared import RW_F
from checkers.monitors import MONITORS, Verdict
from harness.core.errors import UserError
from harness.core.history import OBSERVATIONS, Interval, Op, Type
from harness.core.limits import ENGINE_MEMORY_BYTES
from harness.core.result import Anomaly, Result, Side, Valid

ENGINES = ("auto", "monitor", "wgl", "frontier")

_LOCK = frozenset(LOCK_F)
_NAMES: dict[str, frozenset[str]] = {
    "mutex": _LOCK,
    "reentrant": _LOCK,
    "fenced": _LOCK,
    "semaphore": _LOCK,
    "jepsen-mutex": _LOCK,
    "belief": _LOCK,
    "rwlock": _LOCK | frozenset(RW_F),
    "lease": _LOCK | {EXPIRE},
    "cas": frozenset({READ, WRITE, CAS}),
    "register": frozenset({READ, WRITE, CAS}),
    "kv": frozenset(KV_F),
    "store": frozenset({WRITE}),
}
_DATA = frozenset({"cas", "register", "kv", "store"})


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a model may need to know.  Times in ns.  lost: loss signals of clients (belief)."""

    ttl_ns: int | None = None
    drift_ppm: int = 0
    k: int | None = None
    initial: Any = None
    judge_busy: bool = False
    lost: tuple[Op, ...] = ()
    end_ns: int | None = None


class Property(msgspec.Struct, frozen=True, kw_only=True):
    """One question.  model, options: for the general engine (None: it cannot be asked).  monitor:
    the fast answer (None: there is none)."""

    name: str
    model: str | None
    options: Mapping[str, Any]
    monitor: Callable[[Iterable[Interval]], Verdict] | None
    side: Side


def names_of(model: str) -> frozenset[str]:
    """The values of ``f`` that a model is about."""
    return _NAMES[model]


def properties(model: str, settings: Settings) -> list[Property]:
    """The questions that ``model`` stands for; the first is the one that decides."""
    if model == "lease":
        return [_lease(settings, "safe"), _lease(settings, "exact")]
    if model == "belief":
        return [_belief(settings, "with-ttl"), _belief(settings, "naive")]
    options: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    if model == "semaphore":
        options = {"k": settings.k}
    elif model in ("cas", "register"):
        options = {"initial": settings.initial}
    elif model in ("mutex", "fenced") and settings.judge_busy:
        extra = {"busy": True}
    monitor = MONITORS.get(model)
    return [
        Property(
            name=model,
            model=model,
            options=options,
            monitor=None if monitor is None else _bound(monitor, {**options, **extra}),
            side=Side.RESOURCE if model in _DATA else Side.SERVICE,
        )
    ]


def _bound(
    monitor: Callable[..., Verdict], options: Mapping[str, Any]
) -> Callable[[Iterable[Interval]], Verdict]:
    return lambda intervals: monitor(intervals, **options)


def _lease(settings: Settings, name: str) -> Property:
    options: dict[str, Any] = {"ttl_ns": settings.ttl_ns, "property": name}
    if name == "safe":
        options["drift_ppm"] = settings.drift_ppm
    return Property(
        name=name,
        model="lease",
        options=options,
        monitor=_bound(MONITORS["lease"], options),
        side=Side.SERVICE,
    )


def _belief(settings: Settings, name: str) -> Property:
    options = {
        "ttl_ns": settings.ttl_ns,
        "enforced": name == "with-ttl",
        "lost": settings.lost,
        "end_ns": settings.end_ns,
    }
    return Property(
        name=name,
        model=None,
        options={},
        monitor=_bound(MONITORS["belief"], options),
        side=Side.CLIENT,
    )


def relevant(interval: Interval, names: frozenset[str], *, fails: bool, busy: bool) -> bool:
    """Whether an operation says anything: plain failures do not, *busy* only if asked for."""
    if interval.invoke.f not in names:
        return False
    done = interval.complete
    if done is None or done.type != Type.FAIL or fails:
        return True
    return done.error in OBSERVATIONS and (busy or done.error != BUSY)


def ask_monitor(prop: Property, key: str | None, intervals: list[Interval]) -> Result | None:
    """The fast monitor's verdict on one key; None if the property has no monitor.

    ``decided_by`` is "nobody" where an assumption failed and nothing was seen: ask the engine.
    """
    if prop.monitor is None:
        return None
    verdict = prop.monitor(intervals)
    result = _fresh(prop, key, intervals)
    result.stats.update(verdict.stats)
    result.valid = verdict.valid
    result.anomalies = verdict.anomalies
    result.says = verdict.says
    decided = verdict.exact or verdict.valid is Valid.FALSE
    result.stats.update(
        decided_by="monitor" if decided else "nobody",
        exact=decided,
        why=verdict.why or "all assumptions of the fast monitor hold",
    )
    if verdict.count:
        result.stats["violations"] = verdict.count
    if not decided:
        result.stats["missing"] = f"the monitor cannot decide ({verdict.why}); use --engine auto"
    return result


def _fresh(prop: Property, key: str | None, intervals: list[Interval]) -> Result:
    stats: dict[str, Any] = {"operations": len(intervals)}
    if key is not None:
        stats["key"] = key
    return Result(checker=prop.name, valid=Valid.UNKNOWN, stats=stats)


def ask_engine(
    prop: Property,
    key: str | None,
    intervals: list[Interval],
    *,
    engine: str,
    budget_s: float,
    why: str,
) -> Result:
    """The general engine's verdict on one key.  why: why it and not the monitor."""
    result = _fresh(prop, key, intervals)
    if prop.model is None:
        raise UserError(
            f"{prop.name} is read off the history by its monitor, no search applies; leave out "
            f"--engine {engine}"
        )
    model = make(prop.model, **prop.options)
    budget_s = max(budget_s, 0.0)
    if engine == "auto":
        found = engine_check(intervals, model, budget_s=budget_s)
        valid, strategy, said = found.valid, found.strategy, found.why
        configurations, witness = found.configurations, found.witness
        blocked = None if witness is None else (witness.blocked, witness.open)
    else:
        valid, said, configurations, blocked = forced(intervals, model, engine, budget_s=budget_s)
        strategy = engine
    known = valid is not Valid.UNKNOWN
    result.valid = valid
    result.stats.update(
        decided_by=f"general engine ({strategy})" if known else "nobody",
        exact=known,
        why=why,
        configurations=configurations,
    )
    if valid is Valid.FALSE:
        result.anomalies = [_anomaly(prop, blocked)]
        result.stats["violations"] = 1
        result.says = result.anomalies[0].says
    elif known:
        result.says = f"{prop.name}: no violation"
    else:
        result.says = f"no verdict: {said}"
        lacks = missing(intervals, model, Result(checker=prop.name, valid=valid, says=said))
        result.stats["missing"] = f"{lacks} Give more time with --budget-s."
    return result


def forced(
    intervals: list[Interval], model: Model, engine: str, *, budget_s: float
) -> tuple[Valid, str, int, tuple[Interval, tuple[Interval, ...]] | None]:
    """One strategy alone: (verdict, reason, configurations, what blocked it)."""
    strategy = {"wgl": wgl, "frontier": frontier}[engine]
    work = Work(intervals, determined(model))
    budget = Budget(seconds=budget_s, memory_bytes=ENGINE_MEMORY_BYTES, nodes_max=1 << 62)
    try:
        valid, stuck = strategy.search(work, budget)
    except MemoryError:
        return Valid.UNKNOWN, "the process ran out of memory", 0, None
    if valid is None:
        return Valid.UNKNOWN, f"limit of {budget.reason} reached", stuck.nodes, None
    if valid:
        return Valid.TRUE, "a legal order exists", stuck.nodes, None
    blocked = work.ops[work.seq[stuck.r]]
    return Valid.FALSE, "no legal order", stuck.nodes, (blocked, ())


def _anomaly(prop: Property, blocked: tuple[Interval, tuple[Interval, ...]] | None) -> Anomaly:
    """The violation in the engine's own words; ``checkers.explain`` finds better ones."""
    ops: list[int] = []
    key, says = None, f"no legal order of the operations for {prop.name}"
    if blocked is not None:
        stuck, others = blocked
        key = stuck.invoke.key
        for interval in (stuck, *others):
            ops += [op.index for op in (interval.invoke, interval.complete) if op is not None]
        says += f": none reaches the end of {stuck.invoke.f} by process {stuck.invoke.process}"
    return Anomaly(
        kind="not-linearizable", side=prop.side, ops=sorted(set(ops[:6])), says=says, key=key
    )


def check_engine(engine: str) -> None:
    """UserError unless ``engine`` is one of ENGINES."""
    if engine not in ENGINES:
        raise UserError(f"engine is {engine!r}, it must be one of {', '.join(ENGINES)}")
