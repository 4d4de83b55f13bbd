"""Long files of JSON lines: judged in a stream, in memory that does not grow with the file.

    result = judge_long(Path("history.jsonl"), "lease", ttl_ms=10_000)      # None: not this way
    result = all_locks(Path("history.jsonl"), ttl_ns=10_000_000_000)

The online monitors (``checkers.stream``) read the file once and answer for all lock models at a
time.  Where they cannot decide a key they ask the batch monitors; where those cannot either, the
answer here is None and the caller judges the file as a whole (with the general engine behind it).

Traps: of a lease only *safe* is judged in a stream.  If that is violated so is *exact*; else
*exact* stays unknown, and says how to get it.  Explaining reads the file again, for a few keys.
The online monitors are imported only when a file is long.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from checkers.attach import explained
from checkers.interchange.files import Lines, open_read
from checkers.monitors import Verdict
from checkers.properties import Settings, names_of, properties, relevant
from harness.core.history import pair
from harness.core.limits import EXPLAIN_KEYS_MAX, STREAM_EVENTS_MIN
from harness.core.result import Result, Valid, merge

STREAMED = ("mutex", "fenced", "lease", "belief", "store")
SEGMENTED = ("reentrant", "semaphore", "rwlock", "cas")  # by the batch monitors, piece by piece
ALL_LOCKS = "all-locks"
_CHUNK_BYTES = 1 << 20
_INDEX = re.compile(rb'"index"\s*:\s*(\d+)')
_EXACT_MISSING = "a stream judges 'safe' only; use --engine monitor to judge 'exact' as well"


def is_long(path: Path) -> bool:
    """Whether the file has more than STREAM_EVENTS_MIN lines; stops counting there."""
    count = 0
    with open_read(path) as file:
        try:
            while chunk := file.read(_CHUNK_BYTES):
                count += chunk.count(b"\n")
                if count > STREAM_EVENTS_MIN:
                    return True
        except (EOFError, OSError):
            return False  # torn or damaged: the reader that names such things will say so
    return False


def judge_long(path: Path, model: str, settings: Settings, *, explain: bool) -> Result | None:
    """The verdict on one model in a stream, or None if that cannot decide it."""
    if settings.judge_busy:
        return None
    if model in SEGMENTED:
        from checkers.segments import check_segments

        verdict = check_segments(path, model, k=settings.k, initial=settings.initial)
        return _alone(verdict, path, model, settings, explain=explain)
    if model not in STREAMED:
        return None
    if model in ("lease", "belief") and settings.ttl_ns is None:
        return None  # each acquire may carry its own; the reader of the whole looks at that
    from checkers.stream import check_stream

    found = check_stream(path, ttl_ns=settings.ttl_ns, drift_ppm=settings.drift_ppm)[model]
    if model == "lease" and not _without_tokens(found):
        return None
    result = _alone(found, path, model, settings, explain=explain)
    asked = properties(model, settings)
    if result is None or len(asked) == 1:
        return result
    other = _result(asked[1].name, found)
    if model == "lease" and found.valid is Valid.TRUE:
        other.valid = Valid.UNKNOWN
        other.stats.update(decided_by="nobody", exact=False, missing=_EXACT_MISSING)
        other.says, other.anomalies = _EXACT_MISSING, []
    elif model == "belief":
        naive = check_stream(path, ttl_ns=settings.ttl_ns, enforced=False)["belief"]
        other = _result(asked[1].name, naive)
    return Result(
        checker=model,
        valid=result.valid,
        says=f"{result.checker}: {result.says}",
        anomalies=list(result.anomalies),
        stats=dict(result.stats),
        sub=[result, other],
    )


def _alone(
    found: Verdict, path: Path, model: str, settings: Settings, *, explain: bool
) -> Result | None:
    """The verdict on the model's first property; None if the stream has none."""
    if found.valid is Valid.UNKNOWN:
        return None
    result = _result(properties(model, settings)[0].name, found)
    if explain and found.valid is Valid.FALSE:
        _explain(result, path, model, settings)
    return result


def all_locks(path: Path, *, ttl_ns: int | None = None, drift_ppm: int = 0) -> Result:
    """Every lock monitor in one pass.  Those that fit the history decide: with leases ``lease`` and
    ``belief``, else ``mutex``, or ``fenced`` if grants carry tokens; ``store`` if data was written.
    """
    from checkers.stream import check_stream

    found = check_stream(path, ttl_ns=ttl_ns, drift_ppm=drift_ppm)
    leased = ttl_ns is not None or _header_ttl(path)
    fenced = found["fenced"].valid is not Valid.UNKNOWN
    deciding = {
        "lease": leased,
        "belief": leased,
        "fenced": fenced and not leased,
        "mutex": not leased and not fenced,
        "store": found["store"].valid is not Valid.UNKNOWN,
    }
    sub = []
    for name in STREAMED:
        part = _result(name, found[name])
        if not deciding[name]:
            part.stats["applies"] = False
        sub.append(part)
    counted = [part for part in sub if deciding[part.checker]]
    valid = merge(part.valid for part in counted)
    worst = next((part for part in counted if part.valid is valid), None)
    anomalies = [anomaly for part in counted for anomaly in part.anomalies]
    stats = dict(worst.stats) if worst is not None else {}
    return Result(
        checker=ALL_LOCKS,
        valid=valid,
        says="" if worst is None else f"{worst.checker}: {worst.says}",
        anomalies=anomalies,
        stats=stats,
        sub=sub,
    )


def _without_tokens(verdict: Verdict) -> bool:
    """Leaves out what the stream says about tokens, which the lease model does not ask.

    False if that cannot be told, since not all violations are listed.
    """
    kept = [anomaly for anomaly in verdict.anomalies if "token" not in anomaly.kind]
    dropped = len(verdict.anomalies) - len(kept)
    if not dropped:
        return True
    if not kept and verdict.count > dropped:
        return False
    verdict.anomalies = kept
    verdict.count -= dropped
    if not kept:
        verdict.valid = Valid.TRUE if verdict.exact else Valid.UNKNOWN
    return True


def _header_ttl(path: Path) -> bool:
    from checkers.stream import Lines as Batches

    lines = Batches(path)
    next(iter(lines), None)
    return lines.header.ttl_ns is not None


def _result(name: str, verdict: Verdict) -> Result:
    known = verdict.valid is not Valid.UNKNOWN
    stats: dict[str, Any] = {
        **verdict.stats,
        "decided_by": "online monitor" if known else "nobody",
        "exact": known,
        "why": verdict.why or "all assumptions of the fast monitor hold",
        "keys": verdict.keys,
    }
    if verdict.count:
        stats["violations"] = verdict.count
    if not known:
        stats["missing"] = f"{verdict.why or 'nothing was seen'}; judge the model alone"
    events = stats.get("events", 0)
    fine = f"{events} events on {verdict.keys} keys: no violation"
    return Result(
        checker=name,
        valid=verdict.valid,
        says=fine if verdict.valid is Valid.TRUE else verdict.says,
        anomalies=verdict.anomalies,
        stats=stats,
    )


def _explain(result: Result, path: Path, model: str, settings: Settings) -> None:
    """Explains the first violation of a few keys, from their operations alone."""
    from checkers.stream import read_keys

    prop = properties(model, settings)[0]
    first: dict[str | None, int] = {}
    for place, anomaly in enumerate(result.anomalies):
        if len(first) < EXPLAIN_KEYS_MAX:
            first.setdefault(anomaly.key, place)
    intervals = pair(read_keys(path, frozenset(first)))
    names = names_of(model)
    for key, place in first.items():
        ops = [
            op
            for op in intervals
            if op.invoke.key == key
            and relevant(op, names, fails=model == "belief", busy=settings.judge_busy)
        ]
        result.anomalies[place] = explained(result.anomalies[place], prop, ops)
    if result.anomalies:
        more = int(result.stats.get("violations", 1)) - 1
        result.says = result.anomalies[0].says + (f" (and {more} more)" if more > 0 else "")


def lines_of(path: Path, indices: Collection[int]) -> Mapping[int, int]:
    """Lines of the events with these indices, by one more look at the file."""
    wanted = set(indices)
    found: dict[int, int] = {}
    if not wanted:
        return found
    for number, line in Lines(path):
        match = _INDEX.search(line)
        if match is not None and int(match[1]) in wanted:
            found.setdefault(int(match[1]), number)
            if len(found) == len(wanted):
                break
    return found
