"""Results of checkers as facts: each anomaly with its place, each thing shown with its proof.

    facts = result_facts("store/x/1/history.jsonl", results, line_of, replay="lockhavoc run ...")
    # Fact("anomaly", line 812, {"checker": "fencing", ...}), Fact("proof", ..., {"dimension": ...})

Traps: what a checker found true proves something only if the run was not vacuous, and recovery only
if a fault showed its teeth.  A history that others recorded has no faults that we know of, so it
proves neither recovery nor, by itself, fencing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from checkers.audit.model import Dimension, Fact, Place
from harness.core.limits import ANOMALIES_PER_CHECKER
from harness.core.protocols import FaultWindow
from harness.core.result import Anomaly, Result, Valid

# Which dimension a checker speaks for when it finds nothing wrong.
SPEAKS_FOR = {
    "lease": (Dimension.IDENTITY,),
    "exclusion": (Dimension.LEASE,),
    "fencing": (Dimension.FENCING,),
    "honesty": (Dimension.RELEASE_RETRY, Dimension.IDENTITY),
    "liveness": (Dimension.RECOVERY,),
    # Names of models, for histories without a run around them.
    "mutex": (Dimension.IDENTITY,),
    "fenced": (Dimension.IDENTITY,),
    "belief": (Dimension.LEASE,),
}


def result_facts(
    path: str,
    results: Sequence[Result],
    line_of: Callable[[int], int],
    *,
    replay: str,
    faults: Sequence[FaultWindow] = (),
    run: bool = True,
) -> list[Fact]:
    """Facts of one judged history; ``line_of`` gives the line of an event of the history."""
    found: list[Fact] = []
    for result in results:
        found += _anomalies(path, result, line_of, replay)
    vacuous = any(r.checker == "vacuity" and r.valid is not Valid.TRUE for r in results)
    if not vacuous:
        bit = [fault.kind for fault in faults if fault.bit]
        found += _proofs(path, results, bit, run=run)
    return found


def _anomalies(
    path: str, result: Result, line_of: Callable[[int], int], replay: str
) -> Iterator[Fact]:
    if result.valid is not Valid.FALSE:
        return
    shown = result.anomalies[:ANOMALIES_PER_CHECKER]
    count = int(result.stats.get("violations", len(result.anomalies)))
    for number, anomaly in enumerate(shown):
        lines = sorted(line_of(index) for index in anomaly.ops) or [1]
        more = count - len(shown) if number == len(shown) - 1 else 0
        values = {
            "checker": result.checker,
            "what": anomaly.kind,
            "says": anomaly.says + (f" (and {more} more like it)" if more > 0 else ""),
            "steps": tuple(_steps(anomaly)),
            "replay": replay,
        }
        yield Fact("anomaly", Place(path, lines[0], lines[-1]), values)
    if not shown:
        values = {"checker": result.checker, "what": "", "says": result.says, "replay": replay}
        yield Fact("anomaly", Place(path, 1, 1), values)


def _steps(anomaly: Anomaly) -> Iterable[str]:
    yield f"events {', '.join(map(str, anomaly.ops))} of the history show it"
    if anomaly.legal_if:
        yield f"legal if: {anomaly.legal_if}"


def _proofs(
    path: str, results: Sequence[Result], bit: Sequence[str], *, run: bool
) -> Iterator[Fact]:
    for result in results:
        if result.valid is not Valid.TRUE or result.stats.get("applies") is False:
            continue
        name = result.checker.partition("/")[0]
        for dimension in SPEAKS_FOR.get(name, ()):
            if dimension is Dimension.RECOVERY and not bit:
                continue  # nothing broke, so nothing recovered
            under = f" under {', '.join(sorted(set(bit)))}" if bit else ""
            what = f"run{under}" if run else "history"
            values = {"dimension": dimension, "says": f"{what}: {result.checker}: {result.says}"}
            yield Fact("proof", Place(path, 1, 1), values)
