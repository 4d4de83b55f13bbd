"""``check_model``: is this history legal for that model?  The face of the checkers as a library.

    from checkers import check_model, read_history

    result = check_model(read_history("history.jsonl"), "mutex")
    result.valid            # Valid.TRUE | UNKNOWN | FALSE
    result.anomalies[0]     # which operations, in words, as a picture, and what would be legal
    result.stats["decided_by"], result.stats["why"], result.stats["exact"]

The history is validated first: a malformed one raises UserError naming the lines and is never
judged.  Keys are independent and judged apart (``result.sub``).  ``lease`` and ``belief`` answer
two questions each, also in ``sub``: *safe* and *exact*; *with-ttl* and *naive*.  The first decides.

Traps: nothing to judge is UNKNOWN (``stats["vacuous"]``), never TRUE.  UNKNOWN always says in
``stats["missing"]`` what it would take.  A budget is shared by all keys, so one hard key cannot
keep a violation in another from being found.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from checkers.attach import attach
from checkers.models.base import ACQUIRE, LOCK_F, integer
from checkers.monitors.belief import LOST
from checkers.properties import (
    Property,
    Settings,
    ask_engine,
    ask_monitor,
    check_engine,
    names_of,
    properties,
    relevant,
)
from checkers.validate import validate
from harness.core.errors import UserError
from harness.core.history import OBSERVATIONS, History, Interval, Type
from harness.core.limits import ANOMALIES_MAX, ENGINE_BUDGET_S, KEYS_LISTED_MAX, PROBLEMS_MAX
from harness.core.result import Result, Valid, merge

MODEL_NAMES = (
    "mutex",
    "reentrant",
    "fenced",
    "semaphore",
    "rwlock",
    "cas",
    "store",
    "lease",
    "belief",
    "register",
    "kv",
    "jepsen-mutex",
)
ALIASES = {
    "lock": "mutex",
    "reentrant-mutex": "reentrant",
    "fenced-mutex": "fenced",
    "rw": "rwlock",
    "rw-lock": "rwlock",
    "read-write-lock": "rwlock",
    "cas-register": "cas",
    "resource": "store",
    "fenced-resource": "store",
    "exclusion": "belief",
}
_NEEDS_TTL = frozenset({"lease", "belief"})


def model_name(name: str) -> str:
    """The name in MODEL_NAMES that ``name`` (or an alias) means; UserError with a hint."""
    import difflib

    found = ALIASES.get(name, name)
    if found in MODEL_NAMES:
        return found
    close = difflib.get_close_matches(name, [*MODEL_NAMES, *ALIASES], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UserError(f"unknown model {name!r}{hint} (known: {', '.join(MODEL_NAMES)})")


def check_model(
    history: History,
    model: str,
    *,
    ttl_ms: float | None = None,
    k: int | None = None,
    initial: Any = None,
    drift_ppm: int = 0,
    judge_busy: bool = False,
    budget_s: float = ENGINE_BUDGET_S,
    engine: str = "auto",
    explain: bool = True,
) -> Result:
    """Judges ``history`` by ``model`` (one of MODEL_NAMES or ALIASES).

    ttl_ms: lease length; k: permits; initial: first value of a register; each defaults to the
    history's header.  drift_ppm: bound on the clock-rate error (lease).  judge_busy: a refusal
    *busy* claims that somebody held.  engine: auto | monitor | wgl | frontier.  budget_s: for the
    searches, all keys together.  explain: minimise violations and draw them.

    UserError: unknown model or option, malformed history, missing ttl or k.
    """
    name = model_name(model)
    check_engine(engine)
    if budget_s < 0:
        raise UserError(f"budget_s is {budget_s}, it must be 0 or more seconds")
    validate(history)
    settings = settings_of(
        name,
        history,
        ttl_ms=ttl_ms,
        k=k,
        initial=initial,
        drift_ppm=drift_ppm,
        judge_busy=judge_busy,
    )
    parts = _split(name, history, judge_busy=judge_busy)
    if not any(_shows(name, interval) for part in parts.values() for interval in part):
        return _vacuous(name, history)
    if name in _NEEDS_TTL:
        _check_ttl(name, parts, settings)
    if name == "store":
        _check_tokens(parts, history)
    asked = properties(name, settings)
    ends_s = time.monotonic() + budget_s
    answers = []
    for place, prop in enumerate(asked):
        left_s = (ends_s - time.monotonic()) / (len(asked) - place)
        answers.append(_judge(prop, parts, engine=engine, budget_s=left_s))
    for prop, answer in zip(asked, answers, strict=True):
        if explain and answer.valid is Valid.FALSE:
            attach(answer, prop, parts)
    result = answers[0] if len(answers) == 1 else _combined(name, answers)
    if history.torn:
        result.stats["torn"] = True
    return result


def settings_of(
    name: str,
    history: History,
    *,
    ttl_ms: float | None = None,
    k: int | None = None,
    initial: Any = None,
    drift_ppm: int = 0,
    judge_busy: bool = False,
    **others: Any,
) -> Settings:
    """Options checked against the model, with the header's values where none was given.

    others: options of ``check_model`` that no model needs to know; they are ignored.
    """
    del others
    header = history.header
    _only(name, "ttl_ms", ttl_ms, "lease", "belief")
    _only(name, "k", k, "semaphore")
    _only(name, "initial", initial, "cas", "register")
    _only(name, "drift_ppm", drift_ppm or None, "lease")
    if ttl_ms is not None and not ttl_ms > 0:
        raise UserError(f"ttl_ms is {ttl_ms}, it must be greater than 0")
    permits = header.k if k is None else k
    if name == "semaphore":
        if permits is None:
            raise UserError(
                "semaphore: the number of permits is not known; give --k, or k in the header"
            )
        if permits < 1:
            raise UserError(f"semaphore: k is {permits}, it must be at least 1")
    return Settings(
        ttl_ns=header.ttl_ns if ttl_ms is None else round(ttl_ms * 1_000_000),
        drift_ppm=drift_ppm,
        k=permits,
        initial=header.initial if initial is None else initial,
        judge_busy=judge_busy,
        lost=tuple(op for op in history.ops if op.f == LOST) if name == "belief" else (),
        end_ns=history.end_ns,
    )


def _only(name: str, option: str, value: Any, *models: str) -> None:
    if value is not None and name not in models:
        raise UserError(
            f"model {name} has no option {option} (it belongs to {' and '.join(models)}); "
            "leave it out"
        )


def _split(name: str, history: History, *, judge_busy: bool) -> dict[str | None, list[Interval]]:
    """The operations that say something to the model, per key."""
    names = names_of(name)
    fails = name == "belief"
    parts: dict[str | None, list[Interval]] = {}
    for interval in history.intervals():
        if relevant(interval, names, fails=fails, busy=judge_busy):
            parts.setdefault(interval.invoke.key, []).append(interval)
    return parts


def _shows(name: str, interval: Interval) -> bool:
    """Whether an operation was answered; unknown outcomes alone show nothing at all.

    Beliefs begin with a grant: without one there is nothing to compare.
    """
    if name == "belief":
        return interval.outcome == Type.OK and LOCK_F.get(interval.invoke.f) == ACQUIRE
    done = interval.complete
    return done is not None and (done.type == Type.OK or done.error in OBSERVATIONS)


def _vacuous(name: str, history: History) -> Result:
    what = (
        f"no operation that says anything to {name} was answered"
        if history.ops
        else "the history is empty"
    )
    return Result(
        checker=name,
        valid=Valid.UNKNOWN,
        says=f"{what}, so nothing was shown",
        stats={
            "vacuous": True,
            "decided_by": "nobody",
            "exact": False,
            "why": what,
            "missing": f"operations {', '.join(sorted(names_of(name)))} that completed",
            "operations": 0,
        },
    )


def _check_ttl(name: str, parts: dict[str | None, list[Interval]], settings: Settings) -> None:
    """A lease has a length, from the option, the header, or every single acquire."""
    if settings.ttl_ns is not None:
        if settings.ttl_ns <= 0:
            raise UserError(f"{name}: ttl_ns is {settings.ttl_ns}, it must be greater than 0")
        return
    for intervals in parts.values():
        for interval in intervals:
            acquires = LOCK_F.get(interval.invoke.f) == ACQUIRE
            if acquires and integer(interval.field("ttl_ns")) is None:
                raise UserError(
                    f"{name}: the length of the lease is not known; give --ttl-ms, or ttl_ns in "
                    f"the header or in every acquire (that at index {interval.invoke.index} "
                    "has none)"
                )


def _check_tokens(parts: dict[str | None, list[Interval]], history: History) -> None:
    """Each write to a fenced resource carries an integer token, else nothing can be judged."""
    missing = [
        interval.invoke
        for intervals in parts.values()
        for interval in intervals
        if integer(interval.field("token")) is None
    ]
    if missing:
        wanted = {op.index for op in missing[:PROBLEMS_MAX]}
        places = {op.index: place for place, op in enumerate(history.ops) if op.index in wanted}
        problems = []
        for op in missing[:PROBLEMS_MAX]:
            line = history.line(places[op.index])
            where = f"line {line}, index {op.index}" if line else f"index {op.index}"
            problems.append(f"{where}: write without an integer token in its value; add it")
        raise UserError("store: a fenced resource needs the tokens of all writes", problems)


def _judge(
    prop: Property,
    parts: dict[str | None, list[Interval]],
    *,
    engine: str,
    budget_s: float,
) -> Result:
    """One property on all keys: monitors first, so that what is left shares the budget."""
    ends_s = time.monotonic() + budget_s
    by_key: dict[str | None, Result] = {}
    hard: dict[str | None, str] = {}
    for key, intervals in parts.items():
        quick = engine in ("auto", "monitor")
        found = ask_monitor(prop, key, intervals) if quick else None
        if found is None:
            hard[key] = (
                f"{prop.name} has no fast monitor" if quick else f"engine {engine} was asked for"
            )
        elif engine == "monitor" or found.stats["decided_by"] != "nobody":
            by_key[key] = found
        else:
            hard[key] = found.stats["why"]
    if hard and engine == "monitor":
        raise UserError(f"{prop.name} has no fast monitor; use --engine auto, wgl or frontier")
    # Small keys first: what they leave of their share goes to the large ones.
    for place, key in enumerate(sorted(hard, key=lambda key: len(parts[key]))):
        by_key[key] = ask_engine(
            prop,
            key,
            parts[key],
            engine=engine,
            budget_s=(ends_s - time.monotonic()) / (len(hard) - place),
            why=hard[key],
        )
    return _whole(prop, [by_key[key] for key in parts])


def _whole(prop: Property, found: list[Result]) -> Result:
    """The results of all keys as one."""
    valid = merge(result.valid for result in found)
    decisive = next(result for result in found if result.valid is valid)
    anomalies = [anomaly for result in found for anomaly in result.anomalies]
    anomalies.sort(key=lambda anomaly: max(anomaly.ops, default=0))
    operations = sum(result.stats["operations"] for result in found)
    stats = {
        **{name: value for name, value in decisive.stats.items() if name != "key"},
        "decided_by": _deciders(found) if valid is Valid.TRUE else decisive.stats["decided_by"],
        "exact": all(result.stats["exact"] for result in found)
        if valid is Valid.TRUE
        else decisive.stats["exact"],
        "operations": operations,
        "keys": len(found),
    }
    for figure in ("violations", "windows", "naive_overlaps", "configurations"):
        if any(figure in result.stats for result in found):
            stats[figure] = sum(result.stats.get(figure, 0) for result in found)
    says = decisive.says
    if valid is Valid.TRUE:
        says = f"{operations} operations on {_count(len(found), 'key')}: no violation"
    elif anomalies:
        more = stats.get("violations", 1) - 1
        says = anomalies[0].says + (f" (and {more} more)" if more else "")
    listed = found if len(found) <= KEYS_LISTED_MAX else _bad(found)[:KEYS_LISTED_MAX]
    return Result(
        checker=prop.name,
        valid=valid,
        says=says,
        anomalies=anomalies[:ANOMALIES_MAX],
        stats=stats,
        sub=listed if len(found) > 1 else [],
    )


def _bad(found: Iterable[Result]) -> list[Result]:
    return [result for result in found if result.valid is not Valid.TRUE]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _deciders(found: list[Result]) -> str:
    counts: dict[str, int] = {}
    for result in found:
        counts[result.stats["decided_by"]] = counts.get(result.stats["decided_by"], 0) + 1
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{who} ({_count(number, 'key')})" for who, number in counts.items())


def _combined(name: str, answers: list[Result]) -> Result:
    """The first property decides; the others stand beside it."""
    first = answers[0]
    return Result(
        checker=name,
        valid=first.valid,
        says=f"{first.checker}: {first.says}",
        anomalies=list(first.anomalies),
        stats=dict(first.stats),
        sub=answers,
    )
