"""One cell of the matrix: its scenario, its run, and its verdict against what is claimed.

    data = scenario_data(situation, traits)          # what a scenario file would hold
    cell = run_cell(situation, traits, seed=7, store_dir=Path("store"), argv=[])

The verdict, first match wins:

| what the run showed                                   | verdict    |
|-------------------------------------------------------|------------|
| a promised property broke                             | worse      |
| the harness failed, or the run was vacuous            | unknown    |
| a promised property cannot be judged                  | unknown    |
| something that was expected to break held throughout  | better     |
| everything else                                       | as-claimed |

Trap: "better" is one run without a violation, not a proof; ``compare`` treats it so.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import plan as plans
from harness.core.errors import LockhavocError, RefusedError
from harness.core.result import Result, Valid
from harness.library_choice import apply
from harness.library_options import NOTHING, Chosen
from harness.report.document import VACUITY, RunReport, applies
from harness.run import execute, publish
from harness.scenario import parse
from harness.verify import toml
from harness.verify.document import Cell, Loss, Seen, Verdict
from harness.verify.model import BREAKS, HOLDS, PROPERTIES, Setup, Situation
from harness.verify.traits import Traits
from harness.workloads.registry import WORKLOADS

FOUND_PER_PROPERTY = 1


def scenario_data(
    situation: Situation, traits: Traits, choice: Chosen = NOTHING
) -> dict[str, Any] | None:
    """The scenario of a cell as data; None where the situation does not apply.

    Its claim is that all promises are kept; what is not promised is tolerated.
    """
    setup = situation.build(traits)
    if setup is None:
        return None
    data: dict[str, Any] = {
        "name": f"verify-{traits.library}-{traits.backend}-{situation.name}"[:80],
        "description": f"{traits.library} on {traits.backend}: {situation.says}.",
        "claim": {
            "verdict": "holds",
            "tolerates": _tolerated(setup),
            "why": setup.why,
        },
        "backend": {"name": traits.backend, "options": dict(setup.backend_options)},
        "client": {"library": traits.library, "options": dict(setup.client_options)},
        "workload": dict(setup.workload),
        "resource": {"mode": "fenced" if traits.fenced else "unfenced"},
        "faults": [dict(one) for one in setup.faults],
        "run": {"time_ms": setup.time_ms, "recovery_ms": setup.recovery_ms},
    }
    if setup.grant_ms is not None:
        data["run"]["grant_ms"] = setup.grant_ms
    for part in ("backend", "client"):
        if not data[part]["options"]:
            del data[part]["options"]
    if not WORKLOADS.load(setup.workload.get("kind", "mutex")).writes:
        del data["resource"]  # nothing is written that a token could guard
    if choice != NOTHING:
        chosen = apply(parse(data, source=f"situation {situation.name!r}"), choice).client
        data["client"] = chosen.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude_defaults=True
        )
    return data


def _tolerated(setup: Setup) -> list[str]:
    return [
        checker for one in PROPERTIES if setup.claims[one.name] != HOLDS for checker in one.checkers
    ]


def replay_line(situation: Situation, traits: Traits, seed: int, choice: Chosen = NOTHING) -> str:
    """The command that repeats one cell."""
    return " ".join([*_replay_words(situation, traits, seed), *choice.words()])


def _replay_words(situation: Situation, traits: Traits, seed: int) -> list[str]:
    words = [
        "lockhavoc", "verify", traits.library, "--only", situation.name,
        "--backend", traits.backend, "--runtime", traits.runtime, "--seed", str(seed),
    ]  # fmt: skip
    return [shlex.quote(word) for word in words]


def blank(
    situation: Situation, traits: Traits, *, seed: int | None = None, choice: Chosen = NOTHING
) -> Cell:
    """A cell before its run."""
    setup = situation.build(traits)
    return Cell(
        backend=traits.backend,
        runtime=traits.runtime,
        situation=situation.name,
        about=situation.says,
        workload="mutex" if setup is None else str(setup.workload.get("kind", "mutex")),
        kind=situation.kind,
        dimension=situation.dimension,
        claims={} if setup is None else dict(setup.claims),
        why="" if setup is None else setup.why,
        seed=seed,
        replay="" if seed is None else replay_line(situation, traits, seed, choice),
    )


def run_cell(
    situation: Situation,
    traits: Traits,
    *,
    seed: int,
    store_dir: Path,
    argv: Sequence[str],
    choice: Chosen = NOTHING,
    progress: Any = lambda _: None,
) -> tuple[Cell, RunReport | None]:
    """Runs and judges a cell; a fault that cannot be done here is "not-run", with the reason.

    choice: which version of the library runs; what it claims stays that of the registry.
    """
    cell = blank(situation, traits, seed=seed, choice=choice)
    data = scenario_data(situation, traits, choice)
    assert data is not None, f"{situation.name} does not apply to {traits.library}"
    scenario = parse(data, source=f"situation {situation.name!r}")
    try:
        report = execute(
            scenario,
            plans.draw(scenario, seed),
            source=toml.dump(data),
            runtime=traits.runtime,
            store_dir=store_dir,
            argv=argv,
            replay=shlex.split(cell.replay),
            progress=progress,
        )
    except RefusedError as error:
        cell.verdict, cell.says = "not-run", _one_line(str(error))
        return cell, None
    except LockhavocError as error:
        cell.verdict, cell.says = "unknown", _one_line(str(error))
        return cell, None
    publish(report, store_dir)
    judge(cell, report)
    return cell, report


def judge(cell: Cell, report: RunReport) -> None:
    """Fills in what the run showed, and the verdict."""
    results = {result.checker: result for result in report.results}
    cell.run_dir, cell.duration_ms = report.run_dir, report.duration_ms
    for one in PROPERTIES:
        mine = [results[name] for name in one.checkers if name in results]
        cell.seen[one.name] = _seen(mine)
        if cell.seen[one.name] == "broken":
            cell.found += _sentences(mine)
    cell.loss = _loss(results, report)
    liveness, recovery = results.get("liveness"), results.get("recovery")
    cell.recovery_ms = None if liveness is None else liveness.stats.get("recovery_ms")
    cell.takeover_ms = None if recovery is None else recovery.stats.get("takeover_ms")
    cell.verdict, cell.says = _verdict(cell, report, results.get(VACUITY))


def _seen(results: Sequence[Result]) -> Seen:
    if any(result.valid == Valid.FALSE for result in results):
        return "broken"
    asked = [result for result in results if applies(result)]
    if not asked:
        return "not-asked"
    return "unknown" if any(r.valid == Valid.UNKNOWN for r in asked) else "held"


def _sentences(results: Sequence[Result]) -> list[str]:
    found = []
    for result in results:
        for anomaly in result.anomalies[:FOUND_PER_PROPERTY]:
            ops = " ".join(str(op) for op in anomaly.ops)
            found.append(f"{result.checker}: {anomaly.says} (ops {ops})")
    return found


def _loss(results: Mapping[str, Result], report: RunReport) -> Loss:
    belief = results.get("belief")
    if belief is None or "losses" not in belief.stats:
        return Loss()
    stats = belief.stats
    return Loss(
        losses=stats["losses"],
        lag_ms=stats["lag_ms_max"],
        awake_lag_ms=stats["awake_lag_ms_max"],
        told_by=dict(stats["told_by"]),
        signals=stats.get("signals", 0),
    )


def _verdict(cell: Cell, report: RunReport, vacuity: Result | None) -> tuple[Verdict, str]:
    promised = [one for one in PROPERTIES if cell.claims.get(one.name) == HOLDS]
    broken = [one for one in promised if cell.seen[one.name] == "broken"]
    if broken:
        return "worse", "promised, but seen to break: " + "; ".join(one.says for one in broken)
    if report.failures:
        return "unknown", f"the harness failed: {_one_line(report.failures[0])}"
    if vacuity is None or vacuity.valid != Valid.TRUE:
        return "unknown", vacuity.says if vacuity else "nothing says that the run showed anything"
    doubtful = [one for one in promised if cell.seen[one.name] == "unknown"]
    if doubtful:
        return "unknown", "cannot tell: " + "; ".join(one.says for one in doubtful)
    expected = [one for one in PROPERTIES if cell.claims.get(one.name) == BREAKS]
    # Where nothing at all is promised, what was expected to break is what there was to see.
    if not any(cell.seen[one.name] in ("held", "broken") for one in promised or expected):
        return "unknown", "nothing that is promised was put to the test"
    if expected and all(cell.seen[one.name] == "held" for one in expected):
        names = "; ".join(one.says for one in expected)
        return "better", f"not promised, and held in this run: {names}"
    seen = [one.says for one in expected if cell.seen[one.name] == "broken"]
    if seen:
        kept = "promises kept" if promised else "nothing is promised here"
        return "as-claimed", f"{kept}; not promised, and seen to break: " + "; ".join(seen)
    return "as-claimed", f"{len(promised)} promises, none broken"


def _one_line(text: str) -> str:
    return " ".join(text.split())
